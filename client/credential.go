package client

import (
	"context"
	"time"
)

// CreateAccessToken creates a token with all rights; a zero expiry means that it does not expire.
func (c *Client) CreateAccessToken(ctx context.Context, name string, expires time.Time) (token AccessToken, secret string, err error) {
	in := CreateAccessTokenInput{Name: name}
	if !expires.IsZero() {
		in.ExpiresAt = &expires
	}
	made, err := c.CreateToken(ctx, in)
	if err == nil && made.Secret != nil {
		secret = *made.Secret
	}
	return made.AccessToken, secret, err
}

// CreateToken creates a token.
func (c *Client) CreateToken(ctx context.Context, in CreateAccessTokenInput) (*NewToken, error) {
	if in.ExpiresAt != nil {
		utc := in.ExpiresAt.UTC()
		in.ExpiresAt = &utc
	}
	out, err := createAccessToken(ctx, c, in)
	return &out.Payload, err
}

// AccessTokens lists the tokens of the logged-in user that were not revoked.
func (c *Client) AccessTokens(ctx context.Context) ([]AccessToken, error) {
	return collect(0, func(first *int, after string) (*queryAccessTokensAccessTokensAccessTokenConnection, error) {
		out, err := queryAccessTokens(ctx, c, first, after, Where{"revokedAtIsNil": true})
		return &out.AccessTokens, err
	})
}

// RevokeAccessToken ends a token at once.
func (c *Client) RevokeAccessToken(ctx context.Context, id string) error {
	_, err := revokeAccessToken(ctx, c, RevokeAccessTokenInput{ID: id})
	return err
}

// SSHKeys lists the keys of the logged-in user.
func (c *Client) SSHKeys(ctx context.Context) ([]SSHKey, error) {
	return collect(0, func(first *int, after string) (*querySSHKeysSSHKeysSSHKeyConnection, error) {
		out, err := querySSHKeys(ctx, c, first, after)
		return &out.SSHKeys, err
	})
}

// CreateSSHKey lets the server generate a key.
func (c *Client) CreateSSHKey(ctx context.Context, name string) (*NewSSHKey, error) {
	out, err := createSSHKey(ctx, c, CreateSSHKeyInput{Name: name})
	return &out.Payload, err
}

// AddSSHKey adds a public key, in the format of a line of authorized_keys.
func (c *Client) AddSSHKey(ctx context.Context, name, public string) (*SSHKey, error) {
	out, err := createSSHKey(ctx, c, CreateSSHKeyInput{Name: name, PublicKey: public})
	return &out.Payload.SSHKey, err
}

// DeleteSSHKey removes a key; connections that it opened stay open.
func (c *Client) DeleteSSHKey(ctx context.Context, id string) error {
	_, err := deleteSSHKey(ctx, c, DeleteSSHKeyInput{ID: id})
	return err
}

// Keypairs lists the keypairs of a user, by id; "" means the logged-in user.
func (c *Client) Keypairs(ctx context.Context, user string) ([]Keypair, error) {
	return collect(0, func(first *int, after string) (*queryKeypairsKeypairsKeypairConnection, error) {
		out, err := queryKeypairs(ctx, c, user, first, after)
		return &out.Keypairs, err
	})
}

// CreateKeypair creates a keypair for the logged-in user.
func (c *Client) CreateKeypair(ctx context.Context, in CreateKeypairInput) (*NewKeypair, error) {
	out, err := createKeypair(ctx, c, in)
	return &out.Payload, err
}

// UpdateKeypair changes a keypair.
func (c *Client) UpdateKeypair(ctx context.Context, in UpdateKeypairInput) (*Keypair, error) {
	out, err := updateKeypair(ctx, c, in)
	return &out.Payload.Keypair, err
}

// RotateKeypair replaces the secret of a keypair; the old secret is invalid at once.
func (c *Client) RotateKeypair(ctx context.Context, id string) (*NewKeypair, error) {
	out, err := rotateKeypair(ctx, c, RotateKeypairInput{ID: id})
	return &out.Payload, err
}

// DeleteKeypair removes a keypair.
func (c *Client) DeleteKeypair(ctx context.Context, id string) error {
	_, err := deleteKeypair(ctx, c, DeleteKeypairInput{ID: id})
	return err
}
