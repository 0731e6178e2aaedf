package client

import (
	"context"
)

// Why returns the reason why a session waits, the sessions ahead of it, and changes with which
// it could start; nil if it does not wait.
func (c *Client) Why(ctx context.Context, id string) (*Advice, *ClusterState, error) {
	out, err := queryWhy(ctx, c, id)
	if err != nil {
		return nil, nil, err
	}
	if out.Node == nil {
		return nil, nil, notFound("session", id)
	}
	return out.Node.Pending, &out.Cluster, nil
}

// DryRun checks and plans a session without creating it.
func (c *Client) DryRun(ctx context.Context, in CreateSessionInput) (*DryRun, error) {
	out, err := queryDryRun(ctx, c, in)
	return &out.DryRun, err
}

// Queue is the pending sessions of a resource group.
type Queue struct {
	Group      string       `json:"group"` // its name
	TotalCount int          `json:"totalCount"`
	Entries    []QueueEntry `json:"entries"`
}

// Queue lists up to limit pending sessions of a resource group; 0 means all.
func (c *Client) Queue(ctx context.Context, group string, limit int) (*Queue, error) {
	q := &Queue{Entries: []QueueEntry{}}
	for after := ""; ; {
		page := 100
		if limit > 0 {
			page = min(page, limit-len(q.Entries))
		}
		out, err := queryQueue(ctx, c, group, page, after)
		if err != nil {
			return nil, err
		}
		if out.Node == nil {
			return nil, notFound("resource group", group)
		}
		q.Group, q.TotalCount = out.Node.Name, out.Node.Queue.TotalCount
		q.Entries = append(q.Entries, out.Node.Queue.Entries...)
		end := out.Node.Queue.EndCursor
		if end == nil || limit > 0 && len(q.Entries) >= limit {
			return q, nil
		}
		after = *end
	}
}

// UpdatePendingSession changes the request of a pending session, which keeps its place.
func (c *Client) UpdatePendingSession(ctx context.Context, in UpdatePendingSessionInput) (*Session, error) {
	out, err := updatePendingSession(ctx, c, in)
	return &out.Payload.Session, err
}
