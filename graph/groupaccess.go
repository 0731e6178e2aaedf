package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/manager/group"
)

func (r queryResolver) ResourceGroupAccess(ctx context.Context, resourceGroup, user, project *uuid.UUID, first *int, after *ent.Cursor, where *group.AccessWhereInput) (*group.AccessConnection, error) {
	return r.Groups.Access(ctx, group.AccessQuestion{
		Group: resourceGroup, User: user, Project: project, Where: deref(where), First: deref(first), After: after,
	})
}

func (r resourceGroupAccessResolver) ResourceGroup(ctx context.Context, a *group.Access) (*ent.ResourceGroup, error) {
	return loaders(ctx).accessGroups.Load(ctx, a.ResourceGroup)
}

func (r resourceGroupAccessResolver) User(ctx context.Context, a *group.Access) (*ent.User, error) {
	if a.User == nil {
		return nil, nil
	}
	return loaders(ctx).accessUsers.Load(ctx, *a.User)
}

func (r resourceGroupAccessResolver) Project(ctx context.Context, a *group.Access) (*ent.Project, error) {
	if a.Project == nil {
		return nil, nil
	}
	return loaders(ctx).accessProjects.Load(ctx, *a.Project)
}

func (r *Resolver) loadAccessGroups(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.ResourceGroup, error) {
	q, err := r.Client.ResourceGroup.Query().Where(resourcegroup.IDIn(ids...)).CollectFields(ctx, "ResourceGroup", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(g *ent.ResourceGroup) uuid.UUID { return g.ID }), err
}

func (r *Resolver) loadAccessUsers(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.User, error) {
	q, err := r.Client.User.Query().Where(user.IDIn(ids...)).CollectFields(ctx, "User", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(u *ent.User) uuid.UUID { return u.ID }), err
}

func (r *Resolver) loadAccessProjects(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Project, error) {
	q, err := r.Client.Project.Query().Where(project.IDIn(ids...)).CollectFields(ctx, "Project", "Node")
	if err != nil {
		return nil, err
	}
	all, err := q.All(ctx)
	return byID(all, func(p *ent.Project) uuid.UUID { return p.ID }), err
}

func byID[T any](all []T, id func(T) uuid.UUID) map[uuid.UUID]T {
	m := map[uuid.UUID]T{}
	for _, one := range all {
		m[id(one)] = one
	}
	return m
}
