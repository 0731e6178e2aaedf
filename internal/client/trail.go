package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// AuditEntry is one mutation or denial.
type AuditEntry struct {
	ID            string    `json:"id"`
	At            time.Time `json:"at"`
	ActorID       *string   `json:"actorId"`
	ActorEmail    string    `json:"actorEmail"`
	ActedAs       *UserRef  `json:"actedAs"`
	ActedAsID     *string   `json:"actedAsId"`
	Action        string    `json:"action"`
	Entity        string    `json:"entity"`
	EntityID      *string   `json:"entityId"`
	DomainID      *string   `json:"domainId"`
	ProjectID     *string   `json:"projectId"`
	RequestID     string    `json:"requestId"`
	ClientAddress string    `json:"clientAddress"`
	Result        string    `json:"result"`
	Message       string    `json:"message"`
	DurationUS    int64     `json:"durationUs"`
}

const auditFields = `fragment auditFields on AuditEntry {
  id at actorId actorEmail actedAs { id email } actedAsId action entity entityId domainId projectId
  requestId clientAddress result message durationUs
}`

// AuditFilter narrows the trail; zero values do not. What names an object is
// its id.
type AuditFilter struct {
	From, To                                         time.Time
	Actor, Action, Entity, EntityID, Domain, Project string
	Result, Request                                  string
	// Refused leaves out what went well.
	Refused bool
	Limit   int
}

func (f AuditFilter) where() vars {
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

var listAudit = define[struct {
	AuditEntries connection[AuditEntry] `json:"auditEntries"`
}](`query AuditEntries($first: Int, $after: Cursor, $where: AuditEntryWhereInput) {
  auditEntries(first: $first, after: $after, where: $where, orderBy: [{ field: AT, direction: DESC }]) {
    edges { node { ...auditFields } } pageInfo { hasNextPage endCursor }
  }
}`, auditFields)

// AuditEntries reads the trail in sight, newest first.
func (c *Client) AuditEntries(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	return collect(f.Limit, vars{"where": f.where()}, func(v vars) (connection[AuditEntry], error) {
		out, err := listAudit.run(ctx, c, v)
		return out.AuditEntries, err
	})
}

var listActivity = define[struct {
	Activity connection[AuditEntry] `json:"activity"`
}](`query Activity($first: Int, $after: Cursor, $where: AuditEntryWhereInput) {
  activity(first: $first, after: $after, where: $where, orderBy: [{ field: AT, direction: DESC }]) {
    edges { node { ...auditFields } } pageInfo { hasNextPage endCursor }
  }
}`, auditFields)

// Activity reads what one did oneself and what was done as or to oneself,
// newest first.
func (c *Client) Activity(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	return collect(f.Limit, vars{"where": f.where()}, func(v vars) (connection[AuditEntry], error) {
		out, err := listActivity.run(ctx, c, v)
		return out.Activity, err
	})
}

// ExportAudit writes the trail in sight as CSV, oldest first, and returns the
// number of bytes. Of the filter it takes From, To, Domain, Project, Actor,
// Entity and Result.
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

// Retention says how long rows of one kind are kept.
type Retention struct {
	Category string     `json:"category"`
	Days     int        `json:"days"` // 0 = forever
	SweptAt  *time.Time `json:"sweptAt"`
	Removed  int64      `json:"removed"`
}

var listRetention = define[struct {
	Retention []Retention `json:"retention"`
}](`query Retention { retention { category days sweptAt removed } }`)

// Retention lists how long rows are kept.
func (c *Client) Retention(ctx context.Context) ([]Retention, error) {
	out, err := listRetention.run(ctx, c, nil)
	return out.Retention, err
}

var setRetention = define[payload[struct {
	Retention Retention `json:"retention"`
}]](`mutation SetRetention($input: SetRetentionInput!) {
  payload: setRetention(input: $input) { retention { category days sweptAt removed } }
}`)

// SetRetention keeps rows of a category for a number of days, 0 forever.
func (c *Client) SetRetention(ctx context.Context, category string, days int) (*Retention, error) {
	out, err := change(ctx, c, setRetention, vars{"category": category, "days": days})
	return &out.Retention, err
}
