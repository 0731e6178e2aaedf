package vfolder

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// SetQuotaScopeInput sets the limits for all folders of a user or project on a volume; nil
// means the limits of the policies.
type SetQuotaScopeInput struct {
	Volume      uuid.UUID
	User        *uuid.UUID
	Project     *uuid.UUID
	LimitBytes  *int64
	LimitInodes *int64
}

// QuotaScopePayload is a scope after a change.
type QuotaScopePayload struct{ QuotaScope *ent.QuotaScope }

// SetQuotaScope sets or removes a scope's own limits, and creates the scope if it does not
// exist. A proxy that cannot be reached now gets the limits when it connects.
func (s *Service) SetQuotaScope(ctx context.Context, in SetQuotaScopeInput) (*QuotaScopePayload, error) {
	if (in.User == nil) == (in.Project == nil) {
		return nil, problem.Invalid("user", "name a user or a project")
	}
	vol, err := s.volume(ctx, &in.Volume)
	if err != nil {
		return nil, err
	}
	for _, l := range limitKinds {
		if err := l.check(vol, l.wanted(in)); err != nil {
			return nil, err
		}
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
	limited, err := s.limited(sys, scope, in.LimitBytes, in.LimitInodes)
	if err != nil {
		return nil, err
	}
	if err := s.impose(sys, limited, vol); err != nil && !errdefs.IsUnavailable(err) {
		if _, undo := s.limited(sys, scope, scope.LimitBytes, scope.LimitInodes); undo != nil {
			s.Logger.ErrorContext(ctx, "revert a limit that the volume refused", "scope", scope.ID, "error", undo)
		}
		return nil, refused(err)
	}
	scope, err = s.Client.QuotaScope.Get(ctx, scope.ID)
	return &QuotaScopePayload{QuotaScope: scope}, err
}

// limited stores a scope's own limits.
func (s *Service) limited(ctx context.Context, scope *ent.QuotaScope, bytes, inodes *int64) (*ent.QuotaScope, error) {
	up := s.Client.QuotaScope.UpdateOneID(scope.ID).ClearLimitBytes().ClearLimitInodes()
	if bytes != nil {
		up.SetLimitBytes(*bytes)
	}
	if inodes != nil {
		up.SetLimitInodes(*inodes)
	}
	after, err := up.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("store limits: %w", err)
	}
	return after, nil
}

// holder returns the owner of the scope, if the viewer can change the owner.
func (s *Service) holder(ctx context.Context, in SetQuotaScopeInput) (quotascope.Kind, uuid.UUID, uuid.UUID, error) {
	if in.User != nil {
		u, err := s.Client.User.Get(ctx, *in.User)
		if err != nil {
			return "", uuid.Nil, uuid.Nil, permit.Missing(err, "user", "user")
		}
		// Users cannot set their own limits, although they can change themselves.
		_, err = permit.Check(ctx, access.Update, access.User, access.Object{ID: u.ID, Domain: u.DomainID})
		return quotascope.KindUser, u.ID, u.DomainID, err
	}
	p, err := s.Client.Project.Get(ctx, *in.Project)
	if err != nil {
		return "", uuid.Nil, uuid.Nil, permit.Missing(err, "project", "project")
	}
	// Administrators of a project cannot set its limits; this needs the permission to create
	// projects.
	_, err = permit.Check(ctx, access.Create, access.Project, access.Object{Domain: p.DomainID})
	return quotascope.KindProject, p.ID, p.DomainID, err
}

// impose creates a scope at its proxy with its current limits.
func (s *Service) impose(ctx context.Context, scope *ent.QuotaScope, vol *ent.Volume) error {
	p, err := s.materialiseScope(ctx, scope, vol)
	if err != nil {
		return err
	}
	limit, err := s.bytesLimit(ctx, scope)
	if err != nil {
		return err
	}
	_, err = s.applyLimits(ctx, p.rpc, request(scope, vol, limit))
	return err
}
