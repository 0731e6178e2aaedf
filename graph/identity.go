package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
)

func (r queryResolver) Viewer(ctx context.Context) (*model.Viewer, error) {
	me := r.Client.User.Query().Where(user.ID(viewer.From(ctx).User))
	initial, err := me.Clone().Where(user.InitialPassword(true)).Exist(ctx)
	if err != nil {
		return nil, err
	}
	selected, ok := below(ctx, "Viewer", "user")
	if !ok {
		return &model.Viewer{InitialPassword: initial}, nil
	}
	q, err := me.CollectFields(selected, "User", "Node")
	if err != nil {
		return nil, err
	}
	u, err := q.Only(ctx)
	return &model.Viewer{User: u, InitialPassword: initial}, err
}

func (r viewerResolver) Projects(ctx context.Context, v *model.Viewer) ([]*ent.Project, error) {
	q := r.Client.Project.Query().Where(project.IDIn(viewer.From(ctx).Projects...), project.Active(true)).
		Order(project.ByName())
	q, err := q.CollectFields(ctx)
	if err != nil {
		return nil, err
	}
	return q.All(ctx)
}

func (r viewerResolver) ResourceGroups(ctx context.Context, v *model.Viewer) ([]*ent.ResourceGroup, error) {
	q, err := r.Client.ResourceGroup.Query().Where(resourcegroup.Active(true)).
		Order(resourcegroup.ByCreatedAt()).CollectFields(ctx)
	if err != nil {
		return nil, err
	}
	return q.All(ctx)
}

func (r queryResolver) Domains(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.DomainOrder, where *ent.DomainWhereInput) (*ent.DomainConnection, error) {
	return r.Client.Domain.Query().Paginate(ctx, after, first, before, last, ent.WithDomainOrder(orderBy), ent.WithDomainFilter(where.Filter))
}

func (r queryResolver) Projects(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ProjectOrder, where *ent.ProjectWhereInput) (*ent.ProjectConnection, error) {
	return r.Client.Project.Query().Paginate(ctx, after, first, before, last, ent.WithProjectOrder(orderBy), ent.WithProjectFilter(where.Filter))
}

func (r queryResolver) Users(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.UserOrder, where *ent.UserWhereInput) (*ent.UserConnection, error) {
	return r.Client.User.Query().Where(identity.Present()).Paginate(ctx, after, first, before, last, ent.WithUserOrder(orderBy), ent.WithUserFilter(where.Filter))
}

func (r domainResolver) Occupied(ctx context.Context, d *ent.Domain) (resource.Slots, error) {
	return loaders(ctx).byDomain.Load(ctx, d.ID)
}

func (r projectResolver) Occupied(ctx context.Context, p *ent.Project) (resource.Slots, error) {
	return loaders(ctx).byProject.Load(ctx, p.ID)
}

func (r userResolver) Occupied(ctx context.Context, u *ent.User) (resource.Slots, error) {
	return loaders(ctx).byOwner.Load(ctx, u.ID)
}

func (r mutationResolver) CreateDomain(ctx context.Context, input identity.CreateDomainInput) (*identity.DomainPayload, error) {
	return r.Identity.CreateDomain(ctx, input)
}

func (r mutationResolver) CreateProject(ctx context.Context, input identity.CreateProjectInput) (*identity.ProjectPayload, error) {
	return r.Identity.CreateProject(ctx, input)
}

func (r mutationResolver) CreateUser(ctx context.Context, input identity.CreateUserInput) (*identity.UserPayload, error) {
	return r.Identity.CreateUser(ctx, input)
}

func (r mutationResolver) UpdateUser(ctx context.Context, input identity.UpdateUserInput) (*identity.UserPayload, error) {
	return r.Identity.UpdateUser(ctx, input)
}

func (r mutationResolver) AddMembership(ctx context.Context, input identity.AddMembershipInput) (*identity.MembershipPayload, error) {
	return r.Identity.AddMembership(ctx, input)
}

func (r mutationResolver) RemoveMembership(ctx context.Context, input identity.RemoveMembershipInput) (*identity.MembershipPayload, error) {
	return r.Identity.RemoveMembership(ctx, input)
}
