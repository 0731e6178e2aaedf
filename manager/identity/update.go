package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// UpdateUserInput changes what is not nil. ClearPolicy detaches the policy.
type UpdateUserInput struct {
	ID          uuid.UUID
	FullName    *string
	Role        *user.Role
	Status      *user.Status
	Policy      *uuid.UUID
	ClearPolicy *bool
}

// UpdateUser changes a user. Users change only their own name; role, status and
// policy are for admins of the domain, up to their own role. A user who stops
// being active is logged out, and whatever runs with an old role is cut off.
func (s *Service) UpdateUser(ctx context.Context, in UpdateUserInput) (*UserPayload, error) {
	v, err := writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var before, after *ent.User
	err = s.inTx(ctx, func(tx *ent.Tx) error {
		before, after, err = update(ctx, tx, v, in)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change user %s: %w", in.ID, err)
	}
	if before.Role != after.Role || before.Status != after.Status {
		s.open.Disconnect(ctx, in.ID)
	}
	return &UserPayload{User: after.Unwrap()}, nil
}

func update(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, in UpdateUserInput) (before, after *ent.User, err error) {
	// The superadmins first, then the user: always the same order, so that two
	// who demote each other wait instead of both succeeding.
	last, err := lastSuperadmin(ctx, tx, in)
	if err != nil {
		return nil, nil, err
	}
	before, err = tx.User.Query().Where(user.ID(in.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, nil, missing(err, "user", "id")
	}
	if err := in.allowed(v, before); err != nil {
		return nil, nil, err
	}
	if last {
		return nil, nil, problem.Precondition("the last active superadmin stays one")
	}
	if err := bindable(ctx, tx, in.Policy); err != nil {
		return nil, nil, err
	}
	up := before.Update().SetNillableFullName(in.FullName).SetNillableRole(in.Role).SetNillableStatus(in.Status)
	if in.Policy != nil || in.ClearPolicy != nil && *in.ClearPolicy {
		if err := replacePolicy(ctx, tx, in.ID, in.Policy); err != nil {
			return nil, nil, err
		}
	}
	if after, err = up.Save(ctx); err != nil {
		return nil, nil, err
	}
	if after.Status == user.StatusActive || before.Status != user.StatusActive {
		return before, after, nil
	}
	err = tx.LoginSession.Update().
		Where(loginsession.UserID(in.ID), loginsession.RevokedAtIsNil()).
		SetRevokedAt(now()).Exec(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("end logins: %w", err)
	}
	return before, after, nil
}

// replacePolicy gives a user the one policy that binds him everywhere, or none.
func replacePolicy(ctx context.Context, tx *ent.Tx, id uuid.UUID, policy *uuid.UUID) error {
	_, err := tx.PolicyAttachment.Delete().Where(policyattachment.UserID(id),
		policyattachment.WithinProjectIDIsNil(), policyattachment.ResourceGroupIDIsNil()).Exec(ctx)
	if err != nil || policy == nil {
		return err
	}
	return tx.PolicyAttachment.Create().SetPolicyID(*policy).SetUserID(id).Exec(ctx)
}

// lastSuperadmin tells whether the change would leave nobody who may change
// everything. It locks all active superadmins when it could.
func lastSuperadmin(ctx context.Context, tx *ent.Tx, in UpdateUserInput) (bool, error) {
	demoted := in.Role != nil && *in.Role != user.RoleSuperadmin
	stopped := in.Status != nil && *in.Status != user.StatusActive
	if !demoted && !stopped {
		return false, nil
	}
	all, err := tx.User.Query().
		Where(user.RoleEQ(user.RoleSuperadmin), user.StatusEQ(user.StatusActive)).
		Order(user.ByID()).ForUpdate().
		All(viewer.SystemContext(ctx))
	if err != nil {
		return false, fmt.Errorf("read superadmins: %w", err)
	}
	return len(all) == 1 && all[0].ID == in.ID, nil
}

func (in *UpdateUserInput) check() error {
	if in.FullName != nil {
		if err := naming.Line("fullName", *in.FullName, maxFullName); err != nil {
			return err
		}
	}
	if in.Role != nil && user.RoleValidator(*in.Role) != nil {
		return problem.Invalid("role", "is not a role")
	}
	if in.Status != nil && user.StatusValidator(*in.Status) != nil {
		return problem.Invalid("status", "is not a status")
	}
	if in.Policy != nil && in.ClearPolicy != nil && *in.ClearPolicy {
		return problem.Invalid("clearPolicy", "cannot be combined with policy")
	}
	return nil
}

// allowed decides on a user whom the viewer sees.
func (in *UpdateUserInput) allowed(v *viewer.Viewer, u *ent.User) error {
	if v.Superadmin() {
		return nil
	}
	if v.AdminOf(u.DomainID) && !above(u.Role) {
		if in.Role != nil {
			return mayGrant(v, *in.Role)
		}
		return nil
	}
	if v.User != u.ID {
		return problem.Forbidden("you cannot change other users")
	}
	for field, set := range map[string]bool{
		"role": in.Role != nil, "status": in.Status != nil, "policy": in.Policy != nil || in.ClearPolicy != nil,
	} {
		if set {
			return problem.Forbidden("you cannot change your own %s", field).WithField(field)
		}
	}
	return nil
}
