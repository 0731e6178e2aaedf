package client

import (
	"context"
)

// IdentityProviders lists all identity providers.
func (c *Client) IdentityProviders(ctx context.Context) ([]IdentityProvider, error) {
	return collect(0, func(first *int, after string) (*queryIdentityProvidersIdentityProvidersIdentityProviderConnection, error) {
		out, err := queryIdentityProviders(ctx, c, first, after)
		return &out.IdentityProviders, err
	})
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

// IdentityProviderByName returns the identity provider with a name.
func (c *Client) IdentityProviderByName(ctx context.Context, name string) (*IdentityProvider, error) {
	out, err := queryIdentityProviderByName(ctx, c, name)
	if err == nil && out.IdentityProvider == nil {
		return nil, notFound("identity provider", name)
	}
	return out.IdentityProvider, err
}
