package client

import (
	"context"
	"time"
)

// SessionGroup says how its sessions are placed to each other.
type SessionGroup struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Placement string    `json:"placement"` // spread or pack
	Strict    bool      `json:"strict"`
	CreatedAt time.Time `json:"createdAt"`
	Owner     *UserRef  `json:"owner"`
	Project   *Ref      `json:"project"`
	Sessions  struct {
		TotalCount int `json:"totalCount"` // that live
	} `json:"sessions"`
}

const sessionGroupFields = `fragment sessionGroupFields on SessionGroup {
  id name placement strict createdAt owner { id email } project { id name }
  sessions(where: { terminatedAtIsNil: true }) { totalCount }
}`

var listSessionGroups = define[struct {
	SessionGroups connection[SessionGroup] `json:"sessionGroups"`
}](`query SessionGroups($first: Int, $after: Cursor, $where: SessionGroupWhereInput) {
  sessionGroups(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...sessionGroupFields } } pageInfo { hasNextPage endCursor }
  }
}`, sessionGroupFields)

// SessionGroups lists session groups in sight; name "" means all.
func (c *Client) SessionGroups(ctx context.Context, name string) ([]SessionGroup, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[SessionGroup], error) {
		out, err := listSessionGroups.run(ctx, c, v)
		return out.SessionGroups, err
	})
}

var showSessionGroup = define[struct {
	Node *struct {
		SessionGroup
		Members connection[Session] `json:"members"`
	} `json:"node"`
}](`query SessionGroup($id: ID!, $first: Int, $after: Cursor) {
  node(id: $id) { ... on SessionGroup {
    ...sessionGroupFields
    members: sessions(first: $first, after: $after, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { ...sessionFields } } pageInfo { hasNextPage endCursor }
    }
  } }
}`, sessionGroupFields, sessionFields)

// SessionGroup reads a session group by id, with its sessions, newest first.
func (c *Client) SessionGroup(ctx context.Context, id string) (g *SessionGroup, sessions []Session, err error) {
	sessions, err = collect(0, vars{"id": id}, func(v vars) (page connection[Session], err error) {
		out, err := showSessionGroup.run(ctx, c, v)
		if err != nil {
			return page, err
		}
		if out.Node == nil || out.Node.ID == "" {
			return page, notFound("session group", id)
		}
		g = &out.Node.SessionGroup
		return out.Node.Members, nil
	})
	return g, sessions, err
}

// CreateSessionGroupInput is a new session group; Project is an id.
type CreateSessionGroupInput struct {
	Name      string `json:"name"`
	Placement string `json:"placement"`
	Strict    bool   `json:"strict,omitempty"`
	Project   string `json:"project,omitempty"`
}

type sessionGroupPayload struct {
	SessionGroup SessionGroup `json:"sessionGroup"`
}

var createSessionGroup = define[payload[sessionGroupPayload]](`mutation CreateSessionGroup($input: CreateSessionGroupInput!) {
  payload: createSessionGroup(input: $input) { sessionGroup { ...sessionGroupFields } }
}`, sessionGroupFields)

// CreateSessionGroup makes a session group.
func (c *Client) CreateSessionGroup(ctx context.Context, in CreateSessionGroupInput) (*SessionGroup, error) {
	out, err := change(ctx, c, createSessionGroup, in)
	return &out.SessionGroup, err
}

var deleteSessionGroup = define[payload[idOf]](`mutation DeleteSessionGroup($input: DeleteSessionGroupInput!) {
  payload: deleteSessionGroup(input: $input) { id }
}`)

// DeleteSessionGroup removes a session group; its sessions continue.
func (c *Client) DeleteSessionGroup(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteSessionGroup, idOf{id})
	return err
}
