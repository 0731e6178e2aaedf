package client

import (
	"context"
)

// IdentityProviders lists all identity providers.
func (c *Client) IdentityProviders(ctx context.Context) ([]IdentityProvider, error) {
	out, err := queryIdentityProviders(ctx, c)
	return out.IdentityProviders, err
}

// CreateProvider creates an identity provider.
func (c *Client) CreateProvider(ctx context.Context, in CreateIdentityProviderInput) (*IdentityProvider, error) {
	out, err := createIdentityProvider(ctx, c, in)
	return &out.Payload.IdentityProvider, err
}

// UpdateProvider changes an identity provider.
func (c *Client) UpdateProvider(ctx context.Context, in UpdateIdentityProviderInput) (*IdentityProvider, error) {
	out, err := updateIdentityProvider(ctx, c, in)
	return &out.Payload.IdentityProvider, err
}

// DeleteProvider removes an identity provider; its users stay.
func (c *Client) DeleteProvider(ctx context.Context, id string) error {
	_, err := deleteIdentityProvider(ctx, c, DeleteIdentityProviderInput{ID: id})
	return err
}
