package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// AuditFilter selects entries of the audit log; zero values select all. Objects are given by
// their ids.
type AuditFilter struct {
	From, To                                         time.Time
	Actor, Action, Entity, EntityID, Domain, Project string
	Result, Request                                  string
	// Refused selects the requests that failed.
	Refused bool
	Limit   int
}

func (f AuditFilter) where() Where {
	where := between(f.From, f.To)
	for name, value := range map[string]string{
		"actorID": f.Actor, "action": f.Action, "entity": f.Entity, "entityID": f.EntityID,
		"domainID": f.Domain, "projectID": f.Project, "result": f.Result, "requestID": f.Request,
	} {
		put(where, name, value)
	}
	if f.Refused {
		where["resultNEQ"] = "OK"
	}
	return where
}

// AuditEntries lists the entries of the audit log that the viewer can see, newest first.
func (c *Client) AuditEntries(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	return collect(f.Limit, func(first *int, after string) (*queryAuditEntriesAuditEntriesAuditEntryConnection, error) {
		out, err := queryAuditEntries(ctx, c, first, after, f.where())
		return &out.AuditEntries, err
	})
}

// Activity lists the actions of the logged-in user, and the actions on them or in their
// name, newest first.
func (c *Client) Activity(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	return collect(f.Limit, func(first *int, after string) (*queryActivityActivityAuditEntryConnection, error) {
		out, err := queryActivity(ctx, c, first, after, f.where())
		return &out.Activity, err
	})
}

// ExportAudit writes the audit log as CSV, oldest entry first, and returns the number of
// bytes. It uses the filters From, To, Domain, Project, Actor, Entity and Result.
func (c *Client) ExportAudit(ctx context.Context, f AuditFilter, w io.Writer) (int64, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"actor": f.Actor, "entity": f.Entity, "domain": f.Domain, "project": f.Project, "result": f.Result,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	path := "/export/audit.csv"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.send(req)
	if err != nil {
		return 0, err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(w, resp.Body)
	if err != nil && ctx.Err() == nil {
		err = unreachable(c.base, err)
	}
	return n, err
}

// Retention lists how long the rows of each category are kept.
func (c *Client) Retention(ctx context.Context) ([]Retention, error) {
	out, err := queryRetention(ctx, c)
	return out.Retention, err
}

// SetRetention keeps rows of a category for a number of days, 0 forever.
func (c *Client) SetRetention(ctx context.Context, category Enum, days int) (*Retention, error) {
	out, err := setRetention(ctx, c, SetRetentionInput{Category: category, Days: days})
	return &out.Payload.Retention, err
}
