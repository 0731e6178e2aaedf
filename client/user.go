package client

import (
	"context"
	"errors"
)

// User reads one user by id.
func (c *Client) User(ctx context.Context, id string) (*UserDetail, error) {
	out, err := queryUser(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("user", id)
	}
	return out.Node, nil
}

// UserFilter selects users; zero values select all. Name is an e-mail or a username.
type UserFilter struct {
	ID, Name     string
	Role, Status Enum
}

// Users lists the users that the viewer can see.
func (c *Client) Users(ctx context.Context, f UserFilter) ([]User, error) {
	where := Where{}
	put(where, "id", f.ID)
	put(where, "role", f.Role)
	put(where, "status", f.Status)
	if f.Name != "" {
		where["or"] = []Where{{"email": f.Name}, {"username": f.Name}}
	}
	return collect(0, func(first *int, after string) (*queryUsersUsersUserConnection, error) {
		out, err := queryUsers(ctx, c, first, after, where)
		return &out.Users, err
	})
}

// CreateUser creates a user.
func (c *Client) CreateUser(ctx context.Context, in CreateUserInput) (*User, error) {
	out, err := createUser(ctx, c, in)
	return &out.Payload.User, err
}

// UpdateUser changes a user.
func (c *Client) UpdateUser(ctx context.Context, in UpdateUserInput) (*User, error) {
	out, err := updateUser(ctx, c, in)
	return &out.Payload.User, err
}

// UpdateProfile changes the logged-in user.
func (c *Client) UpdateProfile(ctx context.Context, in UpdateProfileInput) (*User, error) {
	out, err := updateProfile(ctx, c, in)
	return &out.Payload.User, err
}

// ResetTOTP turns off the second factor of a user who lost it.
func (c *Client) ResetTOTP(ctx context.Context, user string) (*User, error) {
	out, err := resetTOTP(ctx, c, ResetTOTPInput{User: user})
	return &out.Payload.User, err
}

// DeleteUser starts a task that removes a user who is not active.
func (c *Client) DeleteUser(ctx context.Context, in DeleteUserInput) (*Task, error) {
	out, err := deleteUser(ctx, c, in)
	return &out.Payload.Task, err
}

// ResetPassword sets a password that the user must change at the next login; with "" the
// server generates one. With keep, access tokens, keypairs and SSH keys of the user stay valid.
func (c *Client) ResetPassword(ctx context.Context, user, password string, keep bool) (*PasswordReset, error) {
	out, err := resetUserPassword(ctx, c, ResetUserPasswordInput{User: user, Password: password, KeepCredentials: keep})
	return &out.Payload, err
}

// ImportUsers creates the users of a file; a wrong row does not stop the others.
func (c *Client) ImportUsers(ctx context.Context, in ImportUsersInput) (*Import, error) {
	out, err := importUsers(ctx, c, in)
	return &out.Payload, err
}

// UserByName returns the user with an e-mail address or username.
func (c *Client) UserByName(ctx context.Context, name string) (*User, error) {
	out, err := queryUserByName(ctx, c, name)
	if err == nil && out.User == nil {
		return nil, notFound("user", name)
	}
	return out.User, err
}

// Viewer returns the logged-in user.
func (c *Client) Viewer(ctx context.Context) (*Viewer, error) {
	out, err := queryViewer(ctx, c)
	return &out.Viewer, err
}

// ServerVersion returns the version of the server; it needs no login.
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	out, err := queryServer(ctx, c)
	return out.Server.Version, err
}

// ChangePassword changes the password of the logged-in user. With endAll it also revokes their
// access tokens, keypairs and SSH keys.
func (c *Client) ChangePassword(ctx context.Context, current, next string, endAll bool) error {
	_, err := changePassword(ctx, c, ChangePasswordInput{Current: current, New: next, EndCredentials: endAll})
	var refused *Error
	if errors.As(err, &refused) && (refused.Field == "current" || refused.Field == "new") {
		refused.Field = "the " + refused.Field + " password"
	}
	return err
}

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
