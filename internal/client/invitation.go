package client

import (
	"context"
	"time"
)

// Invitation lets one person sign up.
type Invitation struct {
	ID        string     `json:"id"`
	Email     string     `json:"email"`
	Domain    Ref        `json:"domain"`
	Project   *Ref       `json:"project"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	UsedAt    *time.Time `json:"usedAt"`
	RevokedAt *time.Time `json:"revokedAt"`
}

const invitationFields = `fragment invitationFields on Invitation {
  id email domain { id name } project { id name } createdAt expiresAt usedAt revokedAt
}`

var listInvitations = define[struct {
	Invitations []Invitation `json:"invitations"`
}](`query Invitations { invitations { ...invitationFields } }`, invitationFields)

// Invitations lists the newest ones that one administers.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	out, err := listInvitations.run(ctx, c, nil)
	return out.Invitations, err
}

// NewInvitation is an invitation with its secret, which cannot be read again.
type NewInvitation struct {
	Invitation Invitation `json:"invitation"`
	Secret     *string    `json:"secret"`
	Link       *string    `json:"link"`
}

// CreateInvitationInput is a new invitation; Domain and Project are ids.
type CreateInvitationInput struct {
	Email          string `json:"email"`
	Domain         string `json:"domain"`
	Project        string `json:"project,omitempty"`
	ExpiresInHours *int   `json:"expiresInHours,omitempty"`
}

var createInvitation = define[payload[NewInvitation]](`mutation CreateInvitation($input: CreateInvitationInput!) {
  payload: createInvitation(input: $input) { invitation { ...invitationFields } secret link }
}`, invitationFields)

// CreateInvitation invites someone.
func (c *Client) CreateInvitation(ctx context.Context, in CreateInvitationInput) (*NewInvitation, error) {
	out, err := change(ctx, c, createInvitation, in)
	return &out, err
}

var revokeInvitation = define[payload[NewInvitation]](`mutation RevokeInvitation($input: RevokeInvitationInput!) {
  payload: revokeInvitation(input: $input) { invitation { ...invitationFields } secret link }
}`, invitationFields)

// RevokeInvitation makes an invitation worthless.
func (c *Client) RevokeInvitation(ctx context.Context, id string) error {
	_, err := change(ctx, c, revokeInvitation, idOf{id})
	return err
}
