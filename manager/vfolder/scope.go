package vfolder

import (
	"context"
	"fmt"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// SetQuotaScopeInput says what the folders of a user or project may hold on a volume
// together; nil is what the policies say.
type SetQuotaScopeInput struct {
	Volume      uuid.UUID
	User        *uuid.UUID
	Project     *uuid.UUID
	LimitBytes  *int64
	LimitInodes *int64
}

// QuotaScopePayload is a scope after a change.
type QuotaScopePayload struct{ QuotaScope *ent.QuotaScope }

// SetQuotaScope gives a scope a limit of its own, or takes it away, and makes the scope
// where there is none. A proxy that cannot be reached now hears of it when it is back.
func (s *Service) SetQuotaScope(ctx context.Context, in SetQuotaScopeInput) (*QuotaScopePayload, error) {
	if (in.User == nil) == (in.Project == nil) {
		return nil, problem.Invalid("user", "name a user or a project")
	}
	if in.LimitBytes != nil && *in.LimitBytes < 0 {
		return nil, problem.Invalid("limitBytes", "%d bytes", *in.LimitBytes).WithLimit("0..")
	}
	if in.LimitInodes != nil {
		return nil, problem.Precondition("storage proxies limit bytes, not the number of files").WithField("limitInodes")
	}
	vol, err := s.volume(ctx, &in.Volume)
	if err != nil {
		return nil, err
	}
	kind, holder, domain, err := s.holder(ctx, in)
	if err != nil {
		return nil, err
	}
	scope, err := s.scope(ctx, vol, kind, holder, domain)
	if err != nil {
		return nil, err
	}
	sys := viewer.SystemContext(ctx)
	up := s.client.QuotaScope.UpdateOneID(scope.ID).ClearLimitBytes()
	if in.LimitBytes != nil {
		up = s.client.QuotaScope.UpdateOneID(scope.ID).SetLimitBytes(*in.LimitBytes)
	}
	if err := up.Exec(sys); err != nil {
		return nil, fmt.Errorf("store limit: %w", err)
	}
	if scope, err = s.client.QuotaScope.Query().Where(quotascope.ID(scope.ID)).WithVolume().Only(sys); err != nil {
		return nil, err
	}
	if err := s.impose(sys, scope); err != nil && !errdefs.IsUnavailable(err) {
		return nil, err
	}
	scope, err = s.client.QuotaScope.Get(ctx, scope.ID)
	return &QuotaScopePayload{QuotaScope: scope}, err
}

// holder finds whose scope is meant, whom the viewer has to be allowed to change.
func (s *Service) holder(ctx context.Context, in SetQuotaScopeInput) (quotascope.Kind, uuid.UUID, uuid.UUID, error) {
	if in.User != nil {
		u, err := s.client.User.Get(ctx, *in.User)
		if err != nil {
			return "", uuid.Nil, uuid.Nil, permit.Missing(err, "user", "user")
		}
		// Not as the user himself, who may change himself too.
		_, err = permit.Check(ctx, access.Update, access.User, access.Object{ID: u.ID, Domain: u.DomainID})
		return quotascope.KindUser, u.ID, u.DomainID, err
	}
	p, err := s.client.Project.Get(ctx, *in.Project)
	if err != nil {
		return "", uuid.Nil, uuid.Nil, permit.Missing(err, "project", "project")
	}
	// Nor as its lead: who may make projects says how large they are.
	_, err = permit.Check(ctx, access.Create, access.Project, access.Object{Domain: p.DomainID})
	return quotascope.KindProject, p.ID, p.DomainID, err
}

// impose makes a scope at its proxy with the limit that binds it now.
func (s *Service) impose(ctx context.Context, scope *ent.QuotaScope) error {
	p, err := s.materialiseScope(ctx, scope, scope.Edges.Volume)
	if err != nil {
		return err
	}
	limit, err := s.bytesLimit(ctx, scope)
	if err != nil {
		return err
	}
	_, err = settled(ctx, p.rpc, scope, limit)
	return err
}

// ownReached says that a scope has no room by its own limit; "" when it has.
func ownReached(scope *ent.QuotaScope, brings int64) string {
	if scope.LimitBytes == nil || scope.UsedBytes == nil || *scope.UsedBytes+max(brings, 1) <= *scope.LimitBytes {
		return ""
	}
	return "the quota scope holds " + strconv.FormatInt(*scope.UsedBytes, 10) + " bytes of " + strconv.FormatInt(*scope.LimitBytes, 10)
}
