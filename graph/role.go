package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/role"
)

func (r queryResolver) Roles(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.RoleOrder, where *ent.RoleWhereInput) (*ent.RoleConnection, error) {
	return r.Client.Role.Query().Paginate(ctx, after, first, before, last, ent.WithRoleOrder(orderBy), ent.WithRoleFilter(where.Filter))
}

func (r roleResolver) Allows(_ context.Context, o *ent.Role) ([]*role.Permission, error) {
	return role.Listed(o.Permissions), nil
}

func (r roleGrantResolver) ScopeID(_ context.Context, g *ent.RoleGrant) (*uuid.UUID, error) {
	if g.ScopeID == uuid.Nil {
		return nil, nil
	}
	return &g.ScopeID, nil
}

func (r mutationResolver) CreateRole(ctx context.Context, input role.CreateRoleInput) (*role.RolePayload, error) {
	return r.Roles.CreateRole(ctx, input)
}

func (r mutationResolver) UpdateRole(ctx context.Context, input role.UpdateRoleInput) (*role.RolePayload, error) {
	return r.Roles.UpdateRole(ctx, input)
}

func (r mutationResolver) DeleteRole(ctx context.Context, input role.DeleteRoleInput) (*role.DeleteRolePayload, error) {
	return r.Roles.DeleteRole(ctx, input)
}

func (r mutationResolver) GrantRole(ctx context.Context, input role.GrantRoleInput) (*role.RoleGrantPayload, error) {
	return r.Roles.GrantRole(ctx, input)
}

func (r mutationResolver) RevokeRole(ctx context.Context, input role.RevokeRoleInput) (*role.RevokeRolePayload, error) {
	return r.Roles.RevokeRole(ctx, input)
}

// may returns the operations on an object that the viewer can do, from data in memory.
func may(ctx context.Context, n ent.Noder) ([]access.Operation, error) {
	return permit.Permissions(viewer.From(ctx), n), nil
}

func (r agentResolver) Permissions(ctx context.Context, o *ent.Agent) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r domainResolver) Permissions(ctx context.Context, o *ent.Domain) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r imageResolver) Permissions(ctx context.Context, o *ent.Image) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r projectResolver) Permissions(ctx context.Context, o *ent.Project) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r resourceGroupResolver) Permissions(ctx context.Context, o *ent.ResourceGroup) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r resourcePolicyResolver) Permissions(ctx context.Context, o *ent.ResourcePolicy) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r resourcePresetResolver) Permissions(ctx context.Context, o *ent.ResourcePreset) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r roleResolver) Permissions(ctx context.Context, o *ent.Role) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r sessionResolver) Permissions(ctx context.Context, o *ent.Session) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r userResolver) Permissions(ctx context.Context, o *ent.User) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r vfolderResolver) Permissions(ctx context.Context, o *ent.Vfolder) ([]access.Operation, error) {
	return may(ctx, o)
}

func (r volumeResolver) Permissions(ctx context.Context, o *ent.Volume) ([]access.Operation, error) {
	return may(ctx, o)
}
