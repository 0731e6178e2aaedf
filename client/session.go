package client

import (
	"context"
	"slices"
	"time"

	"github.com/containerd/errdefs"
)

// ended lists the final states of a session.
var ended = []Enum{"TERMINATED", "CANCELLED", "ERROR"}

// Ended reports whether the session has ended.
func (s *Session) Ended() bool { return slices.Contains(ended, s.Status) }

// Ended reports whether the session has ended.
func (s *SessionState) Ended() bool { return slices.Contains(ended, s.Status) }

// Started reports whether the main process has started.
func (s *SessionState) Started() bool {
	return s.Status == "RUNNING" || s.StartedAt != nil || s.ExitCode != nil
}

// MainKernel returns the id of the kernel that runs the command, "" if there is none yet.
func (s *SessionState) MainKernel() string {
	for _, k := range s.Kernels {
		if k.Role == "MAIN" {
			return k.ID
		}
	}
	return ""
}

// SessionFilter selects sessions; zero values select all.
type SessionFilter struct {
	ID, Name string
	Owner    string // id
	Project  string // id
	Statuses []Enum
	Live     bool // not ended; with a name, also not replaced by a restart
	Tag      string
	Array    string // id of the array whose members are selected
	Alone    bool   // only sessions that are not members of an array
	Limit    int
}

// where returns the filter for the server.
func (f SessionFilter) where() Where {
	where := nameIs(f.Name)
	put(where, "id", f.ID)
	put(where, "ownerID", f.Owner)
	put(where, "projectID", f.Project)
	if len(f.Statuses) > 0 {
		where["statusIn"] = f.Statuses
	}
	if f.Live {
		where["statusNotIn"] = ended
		if f.Name != "" {
			where["replaced"] = false
		}
	}
	put(where, "tag", f.Tag)
	put(where, "arrayID", f.Array)
	if f.Alone {
		where["arrayIDIsNil"] = true
	}
	return where
}

// Sessions lists the sessions that the viewer can see, newest first.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) ([]Session, error) {
	where := f.where()
	return collect(f.Limit, func(first *int, after string) (*querySessionsSessionsSessionConnection, error) {
		out, err := querySessions(ctx, c, first, after, where)
		return &out.Sessions, err
	})
}

// SessionContainers lists sessions as Sessions does, with the names of their containers.
func (c *Client) SessionContainers(ctx context.Context, f SessionFilter) ([]SessionContainers, error) {
	where := f.where()
	return collect(f.Limit, func(first *int, after string) (*querySessionContainersSessionsSessionConnection, error) {
		out, err := querySessionContainers(ctx, c, first, after, where)
		return &out.Sessions, err
	})
}

// SessionLoads lists sessions as Sessions does, with the newest samples of their containers.
func (c *Client) SessionLoads(ctx context.Context, f SessionFilter) ([]SessionLoad, error) {
	where := f.where()
	return collect(f.Limit, func(first *int, after string) (*querySessionLoadsSessionsSessionConnection, error) {
		out, err := querySessionLoads(ctx, c, first, after, where)
		return &out.Sessions, err
	})
}

// Session reads one session by id.
func (c *Client) Session(ctx context.Context, id string) (*SessionDetail, error) {
	out, err := querySession(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("session", id)
	}
	return out.Node, nil
}

// CreateSession creates a session. With an idempotency key it repeats the request if the
// server did not answer.
func (c *Client) CreateSession(ctx context.Context, in CreateSessionInput) (*Session, error) {
	var err error
	for range 3 {
		var out *createSessionResponse
		out, err = createSession(ctx, c, in)
		if err == nil {
			return &out.Payload.Session, nil
		}
		if !errdefs.IsUnavailable(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil, err
}

// TerminateSession ends a session; force skips the grace period.
func (c *Client) TerminateSession(ctx context.Context, id string, force bool) (*Session, error) {
	out, err := terminateSession(ctx, c, TerminateSessionInput{ID: id, Force: force})
	return &out.Payload.Session, err
}

// RenameSession renames a session.
func (c *Client) RenameSession(ctx context.Context, id, name string) (*Session, error) {
	out, err := renameSession(ctx, c, RenameSessionInput{ID: id, Name: name})
	return &out.Payload.Session, err
}

// SetSessionTags replaces the tags of a session.
func (c *Client) SetSessionTags(ctx context.Context, id string, tags []string) (*Session, error) {
	out, err := setSessionTags(ctx, c, SetSessionTagsInput{ID: id, Tags: tags})
	return &out.Payload.Session, err
}

// RestartSession starts a session again: a new session with the same request and name.
func (c *Client) RestartSession(ctx context.Context, id string) (*Session, error) {
	out, err := restartSession(ctx, c, RestartSessionInput{ID: id})
	return &out.Payload.Session, err
}

// UsageFilter selects usage; zero values select all. User and Project are ids.
type UsageFilter struct {
	From, To      time.Time
	User, Project string
}

// Usage returns the total usage of the sessions that the viewer can see.
func (c *Client) Usage(ctx context.Context, f UsageFilter) ([]UsageEntry, error) {
	where := Where{}
	put(where, "user", f.User)
	put(where, "project", f.Project)
	for key, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			where[key] = t
		}
	}
	out, err := queryUsage(ctx, c, where)
	return out.Usage, err
}

// SessionArrayFilter selects arrays of sessions; zero values select all.
type SessionArrayFilter struct {
	ID, Name string
	Owner    string // id
	Tag      string
	Live     bool // only arrays with a member that has not ended
	Limit    int
}

// SessionArrays lists the arrays that the viewer can see, newest first.
func (c *Client) SessionArrays(ctx context.Context, f SessionArrayFilter) ([]SessionArray, error) {
	where := nameIs(f.Name)
	put(where, "id", f.ID)
	put(where, "ownerID", f.Owner)
	put(where, "tag", f.Tag)
	if f.Live {
		where["live"] = true
	}
	return collect(f.Limit, func(first *int, after string) (*querySessionArraysSessionArraysSessionArrayConnection, error) {
		out, err := querySessionArrays(ctx, c, first, after, where)
		return &out.SessionArrays, err
	})
}

// CreateSessionArray creates all members of an array.
func (c *Client) CreateSessionArray(ctx context.Context, in CreateSessionArrayInput) (*SessionArray, error) {
	out, err := createSessionArray(ctx, c, in)
	return &out.Payload.Array, err
}

// CancelSessionArray ends all members that have not ended, and returns their number. With force,
// there is no grace period.
func (c *Client) CancelSessionArray(ctx context.Context, id string, force bool) (int, error) {
	out, err := cancelSessionArray(ctx, c, CancelSessionArrayInput{ID: id, Force: force})
	return out.Payload.Sessions, err
}

// RetrySessionArray starts the members that ended without success again, and returns their number.
func (c *Client) RetrySessionArray(ctx context.Context, id string) (int, error) {
	out, err := retrySessionArray(ctx, c, RetrySessionArrayInput{ID: id})
	return out.Payload.Sessions, err
}

// SessionGroups lists the session groups that the viewer can see; name "" means all.
func (c *Client) SessionGroups(ctx context.Context, name string) ([]SessionGroup, error) {
	return collect(0, func(first *int, after string) (*querySessionGroupsSessionGroupsSessionGroupConnection, error) {
		out, err := querySessionGroups(ctx, c, first, after, nameIs(name))
		return &out.SessionGroups, err
	})
}

// SessionGroup reads a session group by id, with its sessions, newest first.
func (c *Client) SessionGroup(ctx context.Context, id string) (g *SessionGroup, sessions []Session, err error) {
	sessions, err = collect(0, func(first *int, after string) (*sessionGroupMembersMembersSessionConnection, error) {
		out, err := querySessionGroup(ctx, c, id, first, after)
		if err != nil {
			return nil, err
		}
		if out.Node == nil || out.Node.ID == "" {
			return nil, notFound("session group", id)
		}
		g = &out.Node.SessionGroup
		return &out.Node.Members, nil
	})
	return g, sessions, err
}

// CreateSessionGroup creates a session group.
func (c *Client) CreateSessionGroup(ctx context.Context, in CreateSessionGroupInput) (*SessionGroup, error) {
	out, err := createSessionGroup(ctx, c, in)
	return &out.Payload.SessionGroup, err
}

// DeleteSessionGroup removes a session group; its sessions continue.
func (c *Client) DeleteSessionGroup(ctx context.Context, id string) error {
	_, err := deleteSessionGroup(ctx, c, DeleteSessionGroupInput{ID: id})
	return err
}

// SessionTemplates lists the templates that the viewer can see, by name; name "" means all.
func (c *Client) SessionTemplates(ctx context.Context, name string) ([]SessionTemplate, error) {
	return collect(0, func(first *int, after string) (*querySessionTemplatesSessionTemplatesSessionTemplateConnection, error) {
		out, err := querySessionTemplates(ctx, c, first, after, nameIs(name))
		return &out.SessionTemplates, err
	})
}

// SessionRequest returns a session with its request.
func (c *Client) SessionRequest(ctx context.Context, id string) (*RequestedSession, error) {
	out, err := querySessionRequest(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("session", id)
	}
	return out.Node, nil
}

// CreateSessionTemplate saves a request.
func (c *Client) CreateSessionTemplate(ctx context.Context, in CreateSessionTemplateInput) (*SessionTemplate, error) {
	out, err := createSessionTemplate(ctx, c, in)
	return &out.Payload.Template, err
}

// UpdateSessionTemplate changes a template.
func (c *Client) UpdateSessionTemplate(ctx context.Context, in UpdateSessionTemplateInput) (*SessionTemplate, error) {
	out, err := updateSessionTemplate(ctx, c, in)
	return &out.Payload.Template, err
}

// DeleteSessionTemplate removes a template.
func (c *Client) DeleteSessionTemplate(ctx context.Context, id string) error {
	_, err := deleteSessionTemplate(ctx, c, DeleteSessionTemplateInput{ID: id})
	return err
}

// UsageReport returns the usage of the sessions that the viewer can see, grouped.
func (c *Client) UsageReport(ctx context.Context, in UsageReportInput) ([]UsageRow, error) {
	if in.By == nil {
		in.By = []Enum{}
	}
	out, err := queryUsageReport(ctx, c, in)
	return out.UsageReport, err
}
