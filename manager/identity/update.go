package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// UpdateUser changes a user. Users can change only their own names and addresses; the rest
// requires the permission to administer them, up to the viewer's own role. Deactivation logs a
// user out and revokes their credentials, unless the input keeps these inactive; their
// sessions continue. Connections with an old role, or from an address that is no longer
// allowed, are closed.
func (s *Service) UpdateUser(ctx context.Context, in UpdateUserInput) (*UserPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var before, after *ent.User
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		before, after, err = s.update(ctx, tx, in)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change user %s: %w", in.ID, err)
	}
	switch {
	case before.Role != after.Role, before.Status != after.Status, before.PasswordChangeRequired != after.PasswordChangeRequired:
		s.logins.Disconnect(ctx, in.ID)
	case in.AllowedAddresses != nil:
		s.logins.Recheck(ctx, in.ID)
	}
	return &UserPayload{User: after.Unwrap()}, nil
}

// UpdateProfile changes the fields that users can change themselves.
func (s *Service) UpdateProfile(ctx context.Context, in UpdateProfileInput) (*UserPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	return s.UpdateUser(ctx, UpdateUserInput{ID: v.User, FullName: in.FullName, AllowedAddresses: in.AllowedAddresses})
}

func (s *Service) update(ctx context.Context, tx *ent.Tx, in UpdateUserInput) (before, after *ent.User, err error) {
	// This lock is taken before the user's row, so that two superadmins who demote each other
	// wait instead of both succeeding.
	if in.demotes() {
		if err := lockSuperadmins(ctx, tx); err != nil {
			return nil, nil, err
		}
	}
	before, err = tx.User.Query().Where(user.ID(in.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, nil, permit.Missing(err, "user", "id")
	}
	if err := s.allowed(ctx, &in, before); err != nil {
		return nil, nil, err
	}
	if in.demotes() {
		if err := notLast(ctx, tx, before.ID); err != nil {
			return nil, nil, err
		}
	}
	if err := notPurged(ctx, tx, before); err != nil {
		return nil, nil, err
	}
	if err := bindable(ctx, tx, in.Policy); err != nil {
		return nil, nil, err
	}
	if in.Policy != nil || isTrue(in.ClearPolicy) {
		if err := replacePolicy(ctx, tx, in.ID, in.Policy); err != nil {
			return nil, nil, err
		}
	}
	if after, err = in.apply(before).Save(ctx); err != nil {
		return nil, nil, err
	}
	switch {
	case after.Status != user.StatusActive && after.Status != before.Status:
		if err = s.logins.EndLogins(ctx, tx, in.ID); err == nil && !isTrue(in.KeepCredentials) {
			_, err = s.logins.EndCredentials(ctx, tx, in.ID) // all connections of the user are closed below
		}
	case in.AllowedAddresses != nil:
		err = s.logins.EndLoginsOutside(ctx, tx, in.ID, after.AllowedAddresses)
	}
	return before, after, err
}

// allowed checks the permission to change a visible user.
func (s *Service) allowed(ctx context.Context, in *UpdateUserInput, u *ent.User) error {
	v, err := permit.Check(ctx, access.Update, access.User, access.Object{ID: u.ID, Domain: u.DomainID, Owner: u.ID})
	if err != nil {
		return err
	}
	self := v.User == u.ID
	if self && !reaches(in.AllowedAddresses, s.address(ctx)) {
		return problem.Precondition("your own address, %s, would no longer be allowed", s.address(ctx)).WithField(addressField)
	}
	if !v.May(access.Update, access.User, access.Object{ID: u.ID, Domain: u.DomainID}) {
		if field := in.forAdmins(); field != "" {
			return problem.Forbidden("you cannot change your own %s", field).WithField(field)
		}
		return nil
	}
	if !self {
		if err := mayGrant(v, u.DomainID, u.Role); err != nil {
			return err
		}
	}
	if in.Role != nil && *in.Role != u.Role {
		return mayGrant(v, u.DomainID, *in.Role)
	}
	return nil
}

// replacePolicy sets or removes the policy that applies to a user everywhere.
func replacePolicy(ctx context.Context, tx *ent.Tx, id uuid.UUID, policy *uuid.UUID) error {
	_, err := tx.PolicyAttachment.Delete().Where(policyattachment.UserID(id),
		policyattachment.WithinProjectIDIsNil(), policyattachment.ResourceGroupIDIsNil()).Exec(ctx)
	if err != nil || policy == nil {
		return err
	}
	return tx.PolicyAttachment.Create().SetPolicyID(*policy).SetUserID(id).Exec(ctx)
}

// lockSuperadmins must be called before the number of superadmins decreases.
func lockSuperadmins(ctx context.Context, tx *ent.Tx) error {
	return store.Lock(ctx, tx, "superadmins")
}

// superadmins queries those who can log in.
func superadmins(tx *ent.Tx) *ent.UserQuery {
	return tx.User.Query().Where(user.RoleEQ(user.RoleSuperadmin), user.StatusEQ(user.StatusActive),
		user.HasDomainWith(domain.Active(true)))
}

// notLast returns an error for the last superadmin.
func notLast(ctx context.Context, tx *ent.Tx, id uuid.UUID) error {
	ids, err := superadmins(tx).Limit(2).IDs(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read superadmins: %w", err)
	}
	if len(ids) == 1 && ids[0] == id {
		return problem.Precondition("the last active superadmin must stay a superadmin")
	}
	return nil
}
