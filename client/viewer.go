package client

import (
	"context"
	"errors"
)

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
