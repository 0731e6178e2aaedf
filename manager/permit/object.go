package permit

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// Of returns the entity and the scopes of a row; false for rows without permissions.
func Of(n ent.Noder) (access.Entity, access.Object, bool) {
	switch x := n.(type) {
	case *ent.Domain:
		return access.Domain, access.Object{ID: x.ID, Domain: x.ID}, true
	case *ent.Project:
		return access.Project, access.Object{ID: x.ID, Domain: x.DomainID, Project: x.ID}, true
	case *ent.User:
		return access.User, access.Object{ID: x.ID, Domain: x.DomainID, Owner: x.ID}, true
	case *ent.Session:
		return access.Session, access.Object{ID: x.ID, Domain: x.DomainID, Project: x.ProjectID, Owner: x.OwnerID}, true
	case *ent.ImageBuild:
		return access.Session, access.Object{ID: value(x.SessionID), Domain: x.DomainID, Project: x.ProjectID, Owner: x.OwnerID}, true
	case *ent.Deployment:
		return access.Deployment, access.Object{ID: x.ID, Domain: x.DomainID, Project: x.ProjectID, Owner: x.OwnerID}, true
	case *ent.SessionTemplate:
		return access.Template, access.Object{ID: x.ID, Domain: x.DomainID, Project: value(x.ProjectID), Owner: value(x.OwnerID)}, true
	case *ent.Vfolder:
		on := access.Object{ID: x.ID, Domain: x.DomainID, Project: value(x.ProjectID), Owner: value(x.OwnerID)}
		if x.ProjectID != nil {
			on.Members = x.Permission
		}
		return access.Vfolder, on, true
	case *ent.Task:
		return access.Task, access.Object{ID: x.ID, Domain: value(x.DomainID), Owner: value(x.CreatorID)}, true
	case *ent.Role:
		return access.Role, access.Object{ID: x.ID}, true
	case *ent.ResourcePolicy:
		return access.ResourcePolicy, access.Object{ID: x.ID}, true
	case *ent.ResourceGroup:
		return access.ResourceGroup, access.Object{ID: x.ID}, true
	case *ent.ResourcePreset:
		return access.ResourcePreset, access.Object{ID: x.ID}, true
	case *ent.Agent:
		return access.Agent, access.Object{ID: x.ID}, true
	case *ent.Registry:
		return access.Registry, access.Object{ID: x.ID}, true
	case *ent.Image:
		return access.Image, access.Object{ID: x.ID, Domain: value(x.DomainID), Owner: value(x.OwnerID)}, true
	case *ent.Volume:
		return access.Volume, access.Object{ID: x.ID}, true
	case *ent.ObjectStorage:
		return access.ObjectStorage, access.Object{ID: x.ID, Domain: value(x.DomainID), Owner: value(x.OwnerID)}, true
	}
	return "", access.Object{}, false
}

// Permissions returns the operations that the viewer can do on an object that they can see.
func Permissions(v *viewer.Viewer, n ent.Noder) []access.Operation {
	e, on, ok := Of(n)
	if !ok || v == nil {
		return []access.Operation{}
	}
	u, isUser := n.(*ent.User)
	beyond := isUser && u.ID != v.User && above(v, u)
	list := []access.Operation{}
	for _, op := range access.Operations() {
		if op == access.Impersonate && isUser && u.Role == user.RoleAdmin && v.Role == viewer.RoleUser {
			continue // no one can act as a user of a higher rank
		}
		// A visible object can be read; the row rules have decided that.
		if op == access.Read || !beyond && access.Acts(op, e) && v.May(op, e, on) {
			list = append(list, op)
		}
	}
	return list
}

// above reports whether a user's built-in role is superadmin or monitor, which only
// superadmins administer.
func above(v *viewer.Viewer, u *ent.User) bool {
	return !v.Superadmin() && slices.Contains([]user.Role{user.RoleSuperadmin, user.RoleMonitor}, u.Role)
}

// To is Check on a row that the viewer can see.
func To(ctx context.Context, op access.Operation, row ent.Noder) error {
	e, on, ok := Of(row)
	if !ok {
		return fmt.Errorf("permissions are not about %T", row)
	}
	_, err := Check(ctx, op, e, on)
	return err
}

// Inside is To for a token of any scope: reading the contents of an object is a read, and a
// session mounts folders with the scope that starts it.
func Inside(ctx context.Context, op access.Operation, row ent.Noder) error {
	if v := viewer.From(ctx); v != nil && v.Scopes != nil {
		whole := *v
		whole.Scopes = nil
		ctx = viewer.With(ctx, &whole)
	}
	return To(ctx, op, row)
}

// Missing names the field of the input in the error of an object that does not exist or that
// the viewer cannot see. It returns nil for nil.
func Missing(err error, what, field string) error {
	if ent.IsNotFound(err) {
		return problem.NotFound(what).WithField(field)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

func value(u *uuid.UUID) uuid.UUID {
	if u == nil {
		return uuid.Nil
	}
	return *u
}
