package identity

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// UpdateUserInput changes the fields that are not nil. ClearPolicy detaches the policy,
// ClearContainer removes the three ids that their containers run with; an empty
// AllowedAddresses allows all addresses.
type UpdateUserInput struct {
	ID                     uuid.UUID
	FullName               *string
	Username               *string
	Role                   *user.Role
	Status                 *user.Status
	Policy                 *uuid.UUID
	ClearPolicy            *bool
	ContainerUID           *int
	ContainerGID           *int
	ContainerGIDs          []int
	ClearContainer         *bool
	AllowedAddresses       []string
	PasswordChangeRequired *bool
	KeepCredentials        *bool // of a user who is deactivated; nil: revoke them
}

// UpdateProfileInput changes the fields that are not nil.
type UpdateProfileInput struct {
	FullName         *string
	AllowedAddresses []string
}

const maxGroups = 64 // supplementary groups of a container

func (in *UpdateUserInput) check() (err error) {
	if in.FullName != nil {
		if err := naming.Line("fullName", *in.FullName, maxFullName); err != nil {
			return err
		}
	}
	if in.Username != nil {
		lower := strings.ToLower(*in.Username)
		if err := handle(lower); err != nil {
			return err
		}
		in.Username = &lower
	}
	if in.Role != nil && user.RoleValidator(*in.Role) != nil {
		return problem.Invalid("role", "is not a role")
	}
	if in.Status != nil && user.StatusValidator(*in.Status) != nil {
		return problem.Invalid("status", "is not a status")
	}
	if in.Policy != nil && isTrue(in.ClearPolicy) {
		return problem.Invalid("clearPolicy", "cannot be combined with policy")
	}
	if in.AllowedAddresses != nil {
		if in.AllowedAddresses, err = canonical(in.AllowedAddresses); err != nil {
			return err
		}
	}
	return in.checkContainer()
}

func (in *UpdateUserInput) checkContainer() error {
	if isTrue(in.ClearContainer) && (in.ContainerUID != nil || in.ContainerGID != nil || in.ContainerGIDs != nil) {
		return problem.Invalid("clearContainer", "cannot be combined with ids")
	}
	for _, one := range []struct {
		field string
		value *int
	}{{"containerUid", in.ContainerUID}, {"containerGid", in.ContainerGID}} {
		if one.value != nil {
			if err := posixID(one.field, *one.value); err != nil {
				return err
			}
		}
	}
	if len(in.ContainerGIDs) > maxGroups {
		return problem.Invalid("containerGids", "has too many entries").WithLimit(fmt.Sprint(maxGroups))
	}
	for _, g := range in.ContainerGIDs {
		if err := posixID("containerGids", g); err != nil {
			return err
		}
	}
	return nil
}

// posixID rejects the ids of root, and those that file systems use for unknown users.
func posixID(field string, n int) error {
	if n < 1 || n > math.MaxInt32 {
		return problem.Invalid(field, "must be from 1 to %d", math.MaxInt32).WithLimit(fmt.Sprint(math.MaxInt32))
	}
	return nil
}

// demotes reports whether the update makes a superadmin an ordinary or inactive user.
func (in *UpdateUserInput) demotes() bool {
	return in.Role != nil && *in.Role != user.RoleSuperadmin || in.Status != nil && *in.Status != user.StatusActive
}

// forAdmins returns the first field that users cannot change themselves.
func (in *UpdateUserInput) forAdmins() string {
	for _, one := range []struct {
		field string
		set   bool
	}{
		{"role", in.Role != nil},
		{"status", in.Status != nil},
		{"policy", in.Policy != nil || in.ClearPolicy != nil},
		{"username", in.Username != nil},
		{"containerUid", in.ContainerUID != nil || in.ClearContainer != nil},
		{"containerGid", in.ContainerGID != nil},
		{"containerGids", in.ContainerGIDs != nil},
		{"passwordChangeRequired", in.PasswordChangeRequired != nil},
	} {
		if one.set {
			return one.field
		}
	}
	return ""
}

func (in *UpdateUserInput) apply(u *ent.User) *ent.UserUpdateOne {
	up := u.Update().SetNillableFullName(in.FullName).SetNillableUsername(in.Username).
		SetNillableRole(in.Role).SetNillableStatus(in.Status).
		SetNillableContainerUID(in.ContainerUID).SetNillableContainerGid(in.ContainerGID).
		SetNillablePasswordChangeRequired(in.PasswordChangeRequired)
	if in.ContainerGIDs != nil {
		up.SetContainerGids(in.ContainerGIDs)
	}
	if in.AllowedAddresses != nil {
		up.SetAllowedAddresses(in.AllowedAddresses)
	}
	if isTrue(in.ClearContainer) {
		up.ClearContainerUID().ClearContainerGid().SetContainerGids([]int{})
	}
	return up
}

func isTrue(b *bool) bool { return b != nil && *b }

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
