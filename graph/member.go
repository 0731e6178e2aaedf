package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
)

// MemberOf filters by members of a project that the viewer can see, whose memberships they can see
// too.
func (r userWhereInputResolver) MemberOf(ctx context.Context, where *ent.UserWhereInput, of *uuid.UUID) error {
	if of == nil {
		return nil
	}
	visible, err := r.Client.Project.Query().Where(project.ID(*of)).Exist(ctx)
	if err != nil {
		return err
	}
	if !visible {
		where.AddPredicates(user.IDIn())
		return nil
	}
	where.AddPredicates(user.HasMembershipsWith(membership.ProjectID(*of)))
	return nil
}

// UserContainsFold filters by a part of what everyone who can see a membership can see of its user.
func (r membershipWhereInputResolver) UserContainsFold(_ context.Context, where *ent.MembershipWhereInput, text *string) error {
	if text != nil {
		where.AddPredicates(membership.HasUserWith(user.Or(user.EmailContainsFold(*text), user.FullNameContainsFold(*text))))
	}
	return nil
}
