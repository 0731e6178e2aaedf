package client

import (
	"context"
)

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
