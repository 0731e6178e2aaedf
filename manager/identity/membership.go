package identity

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// AddMembershipInput makes a user a member of a project, or changes whether the member
// administers it. A nil Admin leaves an existing member unchanged.
type AddMembershipInput struct {
	Project uuid.UUID
	User    uuid.UUID
	Admin   *bool
}

// RemoveMembershipInput removes a user from a project.
type RemoveMembershipInput struct {
	Project uuid.UUID
	User    uuid.UUID
}

// MembershipPayload is the project whose members changed.
type MembershipPayload struct{ Project *ent.Project }

// AddMembership adds or changes a member. It requires the permission to manage the project's
// members.
func (s *Service) AddMembership(ctx context.Context, in AddMembershipInput) (*MembershipPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	var p *ent.Project
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		if p, err = administered(ctx, tx, in.Project); err != nil {
			return err
		}
		if err := joinable(ctx, tx, p, in.User); err != nil {
			return err
		}
		return tx.Membership.Create().
			SetProjectID(in.Project).SetUserID(in.User).SetNillableAdmin(in.Admin).
			OnConflict(sql.ConflictColumns(membership.FieldUserID, membership.FieldProjectID)).
			Update(func(up *ent.MembershipUpsert) {
				if in.Admin != nil {
					up.SetAdmin(*in.Admin)
				} else {
					up.SetIgnore(membership.FieldAdmin)
				}
			}).Exec(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("set membership: %w", err)
	}
	s.logins.Disconnect(ctx, in.User)
	return &MembershipPayload{Project: p.Unwrap()}, nil
}

// RemoveMembership removes a member. It requires the permission to manage the members, except
// for members who leave.
func (s *Service) RemoveMembership(ctx context.Context, in RemoveMembershipInput) (*MembershipPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	var p *ent.Project
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if v.User == in.User {
			p, err = tx.Project.Get(ctx, in.Project)
		} else {
			p, err = administered(ctx, tx, in.Project)
		}
		if err != nil {
			return err
		}
		n, err := tx.Membership.Delete().Where(membership.ProjectID(in.Project), membership.UserID(in.User)).Exec(ctx)
		if err == nil && n == 0 {
			return problem.NotFound("member").WithField("user")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("remove membership: %w", err)
	}
	s.logins.Disconnect(ctx, in.User)
	return &MembershipPayload{Project: p.Unwrap()}, nil
}

// administered returns a project whose members the viewer can change.
func administered(ctx context.Context, tx *ent.Tx, id uuid.UUID) (*ent.Project, error) {
	p, err := tx.Project.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "project", "project")
	}
	_, err = permit.Check(ctx, access.ManageMembers, access.Project, objectOf(p))
	return p, err
}

// joinable checks a user who will become a member. A project admin may not be able to see the user
// yet, so the look-up is restricted to the domain instead.
func joinable(ctx context.Context, tx *ent.Tx, p *ent.Project, id uuid.UUID) error {
	u, err := tx.User.Query().Where(user.ID(id), user.DomainID(p.DomainID)).Only(viewer.SystemContext(ctx))
	if err != nil {
		return permit.Missing(err, "user", "user")
	}
	if u.Status == user.StatusDeleted {
		return problem.Precondition("the user is deleted").WithField("user")
	}
	return nil
}
