package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// PendingReport says why a session waits, or would wait.
type PendingReport struct {
	Stage          string     `json:"stage"`
	Position       int        `json:"position"`
	EstimatedStart *time.Time `json:"estimatedStart"`
	Until          *time.Time `json:"until"`
	Holds          int        `json:"holds"`
	DecidedAt      time.Time  `json:"decidedAt"`
	Summary        string     `json:"summary"`
	Agents         int        `json:"agents"`
	Dropped        []struct {
		Check string `json:"check"`
		Slot  string `json:"slot"`
		Count int    `json:"count"`
	} `json:"dropped"`
	Limits  []LimitReached `json:"limits"`
	Nearest *struct {
		Agent     string `json:"agent"`
		Slot      string `json:"slot"`
		Requested string `json:"requested"`
		Free      string `json:"free"`
	} `json:"nearest"`
	Order *QueueOrder `json:"order"`
}

// Advice is the report with who is before the session, and what would let it start.
type Advice struct {
	PendingReport
	Ahead       []QueueEntry `json:"ahead"`
	Suggestions []Suggestion `json:"suggestions"`
}

// QueueOrder is why a session has its place among those of its priority.
type QueueOrder struct {
	Order  string     `json:"order"`
	Levels []Standing `json:"levels"`
}

// Standing is how one of those that a session counts for stands in the queue;
// the highest factor goes first.
type Standing struct {
	Scope  string  `json:"scope"`
	Usage  float64 `json:"usage"`
	Weight float64 `json:"weight"`
	Factor float64 `json:"factor"`
}

// QueueEntry is a session that waits. Session is nil when it is out of sight.
type QueueEntry struct {
	Position     int       `json:"position"`
	Mine         bool      `json:"mine"`
	Priority     int       `json:"priority"`
	WaitingSince time.Time `json:"waitingSince"`
	Stage        string    `json:"stage"`
	Why          string    `json:"why"`
	Holds        int       `json:"holds"`
	Session      *struct {
		ID    string         `json:"id"`
		Name  string         `json:"name"`
		Slots resource.Slots `json:"slots"`
		Owner *UserRef       `json:"owner"`
	} `json:"session"`
	Order          *QueueOrder `json:"order"`
	EstimatedStart *time.Time  `json:"estimatedStart"`
}

// Suggestion is one change with which a session would start at once.
type Suggestion struct {
	Kind          string         `json:"kind"` // slots, resource_group, any_agent or end_session
	Text          string         `json:"text"`
	Field         string         `json:"field"`
	From          string         `json:"from"`
	To            string         `json:"to"`
	Slots         resource.Slots `json:"slots"`
	ResourceGroup *string        `json:"resourceGroup"`
	Session       *string        `json:"session"`
}

const reportFields = `fragment reportFields on PendingReport {
  stage position estimatedStart until holds decidedAt summary agents dropped { check slot count }
  limits { scope holder resourceGroup withinProject policy what used requested limit } nearest { agent slot requested free }
  order { order levels { scope usage weight factor } }
}`

const entryFields = `fragment entryFields on QueueEntry {
  position mine priority waitingSince stage why holds estimatedStart
  session { id name slots owner { id email } } order { order levels { scope usage weight factor } }
}`

const adviceFields = `fragment adviceFields on PendingReport {
  ...reportFields ahead { ...entryFields } suggestions { kind text field from to slots resourceGroup session }
}`

// ClusterState is what may keep every session waiting.
type ClusterState struct {
	// Led reports whether a manager leads the cluster.
	Led bool `json:"led"`
	// Recovery is nil while the cluster is not in recovery mode.
	Recovery *struct {
		Since time.Time `json:"since"`
	} `json:"recovery"`
}

var whyWaits = define[struct {
	Node *struct {
		Pending *Advice `json:"pending"`
	} `json:"node"`
	Cluster ClusterState `json:"cluster"`
}](`query Why($id: ID!) { node(id: $id) { ... on Session { pending { ...adviceFields } } } cluster { led recovery { since } } }`, reportFields, entryFields, adviceFields)

// Why says why a session waits, who is before it and what would let it start; nil
// when it does not wait.
func (c *Client) Why(ctx context.Context, id string) (*Advice, *ClusterState, error) {
	out, err := whyWaits.run(ctx, c, vars{"id": id})
	if err != nil {
		return nil, nil, err
	}
	if out.Node == nil {
		return nil, nil, notFound("session", id)
	}
	return out.Node.Pending, &out.Cluster, nil
}

// DryRun is what would become of a session.
type DryRun struct {
	Verdict  string `json:"verdict"` // now, waits, never or refused
	Refusals []struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field"`
		Limit   string `json:"limit"`
	} `json:"refusals"`
	ResourceGroup *Ref    `json:"resourceGroup"`
	Agents        []Ref   `json:"agents"`
	Pending       *Advice `json:"pending"`
}

var dryRun = define[struct {
	DryRun DryRun `json:"dryRun"`
}](`query DryRun($input: CreateSessionInput!) {
  dryRun(input: $input) { verdict refusals { code message field limit } resourceGroup { id name } agents { id name } pending { ...adviceFields } }
}`, reportFields, entryFields, adviceFields)

// DryRun tries a session without making it.
func (c *Client) DryRun(ctx context.Context, in CreateSessionInput) (*DryRun, error) {
	out, err := dryRun.run(ctx, c, vars{"input": in})
	return &out.DryRun, err
}

// Queue is what waits in a resource group.
type Queue struct {
	Group      string       `json:"group"` // its name
	TotalCount int          `json:"totalCount"`
	Entries    []QueueEntry `json:"entries"`
}

var showQueue = define[struct {
	Node *struct {
		Name  string `json:"name"`
		Queue struct {
			TotalCount int          `json:"totalCount"`
			Entries    []QueueEntry `json:"entries"`
			EndCursor  *string      `json:"endCursor"`
		} `json:"queue"`
	} `json:"node"`
}](`query Queue($id: ID!, $first: Int!, $after: String) {
  node(id: $id) { ... on ResourceGroup { name queue(first: $first, after: $after) { totalCount endCursor entries { ...entryFields } } } }
}`, entryFields)

// Queue lists what waits in a group, at most limit of it; 0 is all.
func (c *Client) Queue(ctx context.Context, group string, limit int) (*Queue, error) {
	q := &Queue{Entries: []QueueEntry{}}
	for after := (*string)(nil); ; {
		page := 100
		if limit > 0 {
			page = min(page, limit-len(q.Entries))
		}
		out, err := showQueue.run(ctx, c, vars{"id": group, "first": page, "after": after})
		if err != nil {
			return nil, err
		}
		if out.Node == nil {
			return nil, notFound("resource group", group)
		}
		q.Group, q.TotalCount = out.Node.Name, out.Node.Queue.TotalCount
		q.Entries = append(q.Entries, out.Node.Queue.Entries...)
		if after = out.Node.Queue.EndCursor; after == nil || limit > 0 && len(q.Entries) >= limit {
			return q, nil
		}
	}
}

// PendingChange is what a session shall ask for that waits; what is empty stays.
type PendingChange struct {
	ID            string         `json:"id"`
	Slots         resource.Slots `json:"slots,omitempty"`
	ResourceGroup string         `json:"resourceGroup,omitempty"`
	StrictAgents  *bool          `json:"strictAgents,omitempty"`
}

var updatePending = define[sessionPayload](`mutation UpdatePendingSession($input: UpdatePendingSessionInput!) {
  payload: updatePendingSession(input: $input) { session { ...sessionFields } }
}`, sessionFields)

// UpdatePendingSession changes what a session asks for; it keeps its place.
func (c *Client) UpdatePendingSession(ctx context.Context, in PendingChange) (*Session, error) {
	out, err := updatePending.run(ctx, c, vars{"input": in})
	return &out.Payload.Session, err
}
