package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/sshkey"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
)

// AccessTokens lists the viewer's own tokens, or those of the given user.
func (r queryResolver) AccessTokens(ctx context.Context, user *uuid.UUID, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.AccessTokenOrder, where *ent.AccessTokenWhereInput) (*ent.AccessTokenConnection, error) {
	return r.Client.AccessToken.Query().Where(accesstoken.UserID(of(ctx, user))).
		Paginate(ctx, after, first, before, last, ent.WithAccessTokenOrder(orderBy), ent.WithAccessTokenFilter(where.Filter))
}

// Keypairs lists the viewer's own keypairs, or those of the given user.
func (r queryResolver) Keypairs(ctx context.Context, user *uuid.UUID, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.KeypairOrder, where *ent.KeypairWhereInput) (*ent.KeypairConnection, error) {
	return r.Client.Keypair.Query().Where(keypair.UserID(of(ctx, user))).
		Paginate(ctx, after, first, before, last, ent.WithKeypairOrder(orderBy), ent.WithKeypairFilter(where.Filter))
}

// of returns the given user, or the viewer.
func of(ctx context.Context, user *uuid.UUID) uuid.UUID {
	if user != nil {
		return *user
	}
	return viewer.From(ctx).User
}

// SSHKeys lists the viewer's own keys.
func (r queryResolver) SSHKeys(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.SSHKeyOrder, where *ent.SSHKeyWhereInput) (*ent.SSHKeyConnection, error) {
	return r.Client.SSHKey.Query().Where(sshkey.UserID(viewer.From(ctx).User)).
		Paginate(ctx, after, first, before, last, ent.WithSSHKeyOrder(orderBy), ent.WithSSHKeyFilter(where.Filter))
}

func (r accessTokenResolver) Scopes(ctx context.Context, t *ent.AccessToken) ([]access.TokenScope, error) {
	list := make([]access.TokenScope, len(t.Scopes))
	for i, scope := range t.Scopes {
		list[i] = access.TokenScope(scope)
	}
	return list, nil
}

func (r accessTokenResolver) Status(ctx context.Context, t *ent.AccessToken) (auth.CredentialStatus, error) {
	owner, err := loaders(ctx).activeUsers.Load(ctx, t.UserID)
	return auth.StatusOf(t.RevokedAt != nil, false, t.ExpiresAt, owner), err
}

func (r keypairResolver) Status(ctx context.Context, k *ent.Keypair) (auth.CredentialStatus, error) {
	owner, err := loaders(ctx).activeUsers.Load(ctx, k.UserID)
	return auth.StatusOf(false, !k.Active, k.ExpiresAt, owner), err
}

func (r sshKeyResolver) Status(ctx context.Context, k *ent.SSHKey) (auth.CredentialStatus, error) {
	owner, err := loaders(ctx).activeUsers.Load(ctx, k.UserID)
	return auth.StatusOf(false, false, k.ExpiresAt, owner), err
}

// loadActiveUsers reads which users are active. A viewer who can see a credential can see its
// owner.
func (r *Resolver) loadActiveUsers(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]bool, error) {
	ids, err := r.Client.User.Query().
		Where(user.IDIn(users...), user.StatusEQ(user.StatusActive), user.HasDomainWith(domain.Active(true))).
		IDs(viewer.SystemContext(ctx))
	active := map[uuid.UUID]bool{}
	for _, one := range ids {
		active[one] = true
	}
	return active, err
}

func (r mutationResolver) CreateAccessToken(ctx context.Context, input auth.CreateAccessTokenInput) (*auth.AccessTokenPayload, error) {
	return r.Auth.CreateAccessToken(ctx, input)
}

func (r mutationResolver) RevokeAccessToken(ctx context.Context, input auth.RevokeAccessTokenInput) (*auth.AccessTokenPayload, error) {
	return r.Auth.RevokeAccessToken(ctx, input)
}

func (r mutationResolver) CreateKeypair(ctx context.Context, input auth.CreateKeypairInput) (*auth.KeypairPayload, error) {
	return r.Auth.CreateKeypair(ctx, input)
}

func (r mutationResolver) UpdateKeypair(ctx context.Context, input auth.UpdateKeypairInput) (*auth.KeypairPayload, error) {
	return r.Auth.UpdateKeypair(ctx, input)
}

func (r mutationResolver) RotateKeypair(ctx context.Context, input auth.RotateKeypairInput) (*auth.KeypairPayload, error) {
	return r.Auth.RotateKeypair(ctx, input)
}

func (r mutationResolver) DeleteKeypair(ctx context.Context, input auth.DeleteKeypairInput) (*auth.DeleteKeypairPayload, error) {
	return r.Auth.DeleteKeypair(ctx, input)
}

func (r mutationResolver) CreateSSHKey(ctx context.Context, input auth.CreateSSHKeyInput) (*auth.SSHKeyPayload, error) {
	return r.Auth.CreateSSHKey(ctx, input)
}

func (r mutationResolver) DeleteSSHKey(ctx context.Context, input auth.DeleteSSHKeyInput) (*auth.DeleteSSHKeyPayload, error) {
	return r.Auth.DeleteSSHKey(ctx, input)
}
