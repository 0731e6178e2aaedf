package graph

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
)

// LoginSessions lists the active logins of the viewer, or of the given user.
func (r queryResolver) LoginSessions(ctx context.Context, user *uuid.UUID, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.LoginSessionOrder, where *ent.LoginSessionWhereInput) (*ent.LoginSessionConnection, error) {
	logins, as, err := r.Auth.Logins(ctx, user)
	if err != nil {
		return nil, err
	}
	return logins.Paginate(as, after, first, before, last, ent.WithLoginSessionOrder(orderBy), ent.WithLoginSessionFilter(where.Filter))
}

func (r loginSessionResolver) Current(ctx context.Context, s *ent.LoginSession) (bool, error) {
	return s.ID == viewer.From(ctx).Credential, nil
}

func (r queryResolver) LoginAttempts(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.LoginAttemptOrder, where *ent.LoginAttemptWhereInput) (*ent.LoginAttemptConnection, error) {
	return r.Client.LoginAttempt.Query().Paginate(ctx, after, first, before, last, ent.WithLoginAttemptOrder(orderBy), ent.WithLoginAttemptFilter(where.Filter))
}

func (r viewerResolver) Due(ctx context.Context, _ *model.Viewer) (*viewer.Due, error) {
	due := viewer.From(ctx).Due
	if due == "" {
		return nil, nil
	}
	return &due, nil
}

func (r viewerResolver) TotpEnabledAt(ctx context.Context, _ *model.Viewer) (*time.Time, error) {
	u, err := r.Client.User.Get(ctx, viewer.From(ctx).User)
	if err != nil {
		return nil, err
	}
	return u.TotpEnabledAt, nil
}

func (r mutationResolver) ChangePassword(ctx context.Context, input auth.ChangePasswordInput) (*model.ViewerPayload, error) {
	return r.afterwards(ctx, r.Auth.ChangePassword(ctx, input))
}

func (r mutationResolver) DisableTotp(ctx context.Context, input auth.DisableTotpInput) (*model.ViewerPayload, error) {
	return r.afterwards(ctx, r.Auth.DisableTotp(ctx, input))
}

// afterwards returns the payload of a change of the viewer's own account.
func (r mutationResolver) afterwards(ctx context.Context, err error) (*model.ViewerPayload, error) {
	if err != nil {
		return nil, err
	}
	ctx, _ = below(ctx, "ViewerPayload", "viewer")
	v, err := queryResolver(r).Viewer(ctx)
	return &model.ViewerPayload{Viewer: v}, err
}

func (r mutationResolver) RevokeLoginSession(ctx context.Context, input auth.RevokeLoginSessionInput) (*auth.LoginSessionPayload, error) {
	return r.Auth.RevokeLoginSession(ctx, input)
}

func (r mutationResolver) StartTotp(ctx context.Context) (*auth.StartTotpPayload, error) {
	return r.Auth.StartTotp(ctx)
}

func (r mutationResolver) ConfirmTotp(ctx context.Context, input auth.ConfirmTotpInput) (*auth.RecoveryCodesPayload, error) {
	return r.Auth.ConfirmTotp(ctx, input)
}

func (r mutationResolver) RegenerateRecoveryCodes(ctx context.Context, input auth.RegenerateRecoveryCodesInput) (*auth.RecoveryCodesPayload, error) {
	return r.Auth.RegenerateRecoveryCodes(ctx, input)
}

func (r mutationResolver) ResetTotp(ctx context.Context, input auth.ResetTotpInput) (*auth.ResetTotpPayload, error) {
	return r.Auth.ResetTotp(ctx, input)
}

func (r mutationResolver) ResetUserPassword(ctx context.Context, input auth.ResetUserPasswordInput) (*auth.ResetUserPasswordPayload, error) {
	return r.Auth.ResetUserPassword(ctx, input)
}
