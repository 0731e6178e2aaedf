package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/vfolder"
)

func (r volumeResolver) MyPermissions(ctx context.Context, vol *ent.Volume, project *uuid.UUID) ([]access.VolumePermission, error) {
	grants, err := loaders(ctx).volumeGrants.Load(ctx, vol.ID)
	if err != nil {
		return nil, err
	}
	v, in := viewer.From(ctx), uuid.Nil
	if project != nil && v.MemberOf(*project) {
		in = *project
	}
	return vfolder.Union(grants, v.Domain, in, v.User), nil
}

func (r volumeGrantResolver) Everybody(_ context.Context, g *ent.VolumeGrant) (bool, error) {
	return g.DomainID == nil && g.ProjectID == nil && g.UserID == nil, nil
}

func (r mutationResolver) GrantVolume(ctx context.Context, input vfolder.GrantVolumeInput) (*vfolder.GrantVolumePayload, error) {
	return r.Folders.GrantVolume(ctx, input)
}

func (r mutationResolver) RevokeVolume(ctx context.Context, input vfolder.RevokeVolumeInput) (*vfolder.RevokeVolumePayload, error) {
	return r.Folders.RevokeVolume(ctx, input)
}

func (r volumeResolver) Proxy(ctx context.Context, vol *ent.Volume) (string, error) {
	return loaders(ctx).proxyNames.Load(ctx, vol.ProxyID)
}

// loadProxyNames reads only the names, because the rows of proxies are visible to superadmins
// only.
func (r *Resolver) loadProxyNames(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]string, error) {
	all, err := r.Client.StorageProxy.Query().Where(storageproxy.IDIn(ids...)).All(viewer.SystemContext(ctx))
	m := map[uuid.UUID]string{}
	for _, p := range all {
		m[p.ID] = p.Name
	}
	return m, err
}

func (r volumeResolver) Orphans(ctx context.Context, vol *ent.Volume) (*vfolder.VolumeOrphans, error) {
	return r.Folders.Orphans(ctx, vol)
}

func (r quotaScopeResolver) EffectiveLimitBytes(ctx context.Context, s *ent.QuotaScope) (*int64, error) {
	return loaders(ctx).scopeLimits.Load(ctx, s.ID)
}

func (r quotaScopeResolver) HolderUser(ctx context.Context, s *ent.QuotaScope) (*ent.User, error) {
	if s.Kind != quotascope.KindUser {
		return nil, nil
	}
	return loaders(ctx).users.Load(ctx, s.HolderID)
}

func (r quotaScopeResolver) HolderProject(ctx context.Context, s *ent.QuotaScope) (*ent.Project, error) {
	if s.Kind != quotascope.KindProject {
		return nil, nil
	}
	return loaders(ctx).holderProjects.Load(ctx, s.HolderID)
}

func (r *Resolver) loadHolderProjects(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Project, error) {
	q, err := r.Client.Project.Query().Where(project.IDIn(ids...)).CollectFields(ctx, "Project", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(p *ent.Project) uuid.UUID { return p.ID }), err
}

func (r mutationResolver) DeleteOrphan(ctx context.Context, input vfolder.DeleteOrphanInput) (*vfolder.DeleteOrphanPayload, error) {
	return r.Folders.DeleteOrphan(ctx, input)
}

func (r mutationResolver) SetQuotaScope(ctx context.Context, input vfolder.SetQuotaScopeInput) (*vfolder.QuotaScopePayload, error) {
	return r.Folders.SetQuotaScope(ctx, input)
}
