package identity

import (
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
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

// posixID rejects the ids of root, and those that file systems use for nobody.
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
