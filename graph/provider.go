package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/oidc"
)

func (r queryResolver) IdentityProviders(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.IdentityProviderOrder, where *ent.IdentityProviderWhereInput) (*ent.IdentityProviderConnection, error) {
	return r.Client.IdentityProvider.Query().Paginate(ctx, after, first, before, last, ent.WithIdentityProviderOrder(orderBy), ent.WithIdentityProviderFilter(where.Filter))
}

func (r queryResolver) LoginProviders(ctx context.Context) ([]*oidc.LoginProvider, error) {
	return r.Providers.LoginProviders(ctx)
}

func (r mutationResolver) CreateIdentityProvider(ctx context.Context, in oidc.CreateIdentityProviderInput) (*oidc.IdentityProviderPayload, error) {
	return r.Providers.CreateIdentityProvider(ctx, in)
}

func (r mutationResolver) UpdateIdentityProvider(ctx context.Context, in oidc.UpdateIdentityProviderInput) (*oidc.IdentityProviderPayload, error) {
	return r.Providers.UpdateIdentityProvider(ctx, in)
}

func (r mutationResolver) DeleteIdentityProvider(ctx context.Context, in oidc.DeleteIdentityProviderInput) (*oidc.IdentityProviderPayload, error) {
	return r.Providers.DeleteIdentityProvider(ctx, in)
}
