package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/task"
)

// Account returns the user's whole row, for viewers who can see all of it. It reads the row
// again, since the query may have selected fewer columns.
func (r userResolver) Account(ctx context.Context, u *ent.User) (*ent.User, error) {
	v := viewer.From(ctx)
	if v.SeesAll() || v.User == u.ID || v.May(access.Update, access.User, access.Object{ID: u.ID, Domain: u.DomainID}) {
		return u, nil
	}
	return nil, nil
}

func (r mutationResolver) UpdateDomain(ctx context.Context, input identity.UpdateDomainInput) (*identity.DomainPayload, error) {
	return r.Identity.UpdateDomain(ctx, input)
}

func (r mutationResolver) DeleteDomain(ctx context.Context, input identity.DeleteDomainInput) (*identity.DeleteDomainPayload, error) {
	return r.Identity.DeleteDomain(ctx, input)
}

func (r mutationResolver) UpdateProject(ctx context.Context, input identity.UpdateProjectInput) (*identity.ProjectPayload, error) {
	return r.Identity.UpdateProject(ctx, input)
}

func (r mutationResolver) DeleteProject(ctx context.Context, input identity.DeleteProjectInput) (*identity.DeleteProjectPayload, error) {
	return r.Identity.DeleteProject(ctx, input)
}

func (r mutationResolver) DeleteUser(ctx context.Context, input identity.DeleteUserInput) (*task.TaskPayload, error) {
	return r.Identity.DeleteUser(ctx, input)
}

func (r mutationResolver) UpdateProfile(ctx context.Context, input identity.UpdateProfileInput) (*identity.UserPayload, error) {
	return r.Identity.UpdateProfile(ctx, input)
}

func (r mutationResolver) ImportUsers(ctx context.Context, input identity.ImportUsersInput) (*identity.ImportUsersPayload, error) {
	return r.Identity.ImportUsers(ctx, input)
}
