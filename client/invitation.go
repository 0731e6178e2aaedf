package client

import (
	"context"
)

// Invitations lists the invitations that the viewer administers, newest first.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	return collect(0, func(first *int, after string) (*queryInvitationsInvitationsInvitationConnection, error) {
		out, err := queryInvitations(ctx, c, first, after)
		return &out.Invitations, err
	})
}

// CreateInvitation invites someone.
func (c *Client) CreateInvitation(ctx context.Context, in CreateInvitationInput) (*NewInvitation, error) {
	out, err := createInvitation(ctx, c, in)
	return &out.Payload, err
}

// RevokeInvitation revokes an invitation.
func (c *Client) RevokeInvitation(ctx context.Context, id string) error {
	_, err := revokeInvitation(ctx, c, RevokeInvitationInput{ID: id})
	return err
}
