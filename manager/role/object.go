package role

import (
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/viewer"
)

// tables are those of the objects on which roles are granted, by their ids' kind.
var tables = map[id.Kind]string{
	id.Domain: "domains", id.Project: "projects", id.User: "users", id.Role: "roles", id.ResourcePolicy: "resource_policies",
	id.ResourceGroup: "resource_groups", id.ResourcePreset: "resource_presets", id.Agent: "agents", id.Registry: "registries",
	id.Image: "images", id.Volume: "volumes", id.Session: "sessions", id.Vfolder: "vfolders", id.Task: "tasks",
}

// Of returns what kind of object a row is and whom it belongs to; false for
// rows that permissions are not about.
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
	case *ent.Vfolder:
		return access.Vfolder, access.Object{ID: x.ID, Domain: x.DomainID, Project: value(x.ProjectID), Owner: value(x.OwnerID)}, true
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
		return access.Image, access.Object{ID: x.ID}, true
	case *ent.Volume:
		return access.Volume, access.Object{ID: x.ID}, true
	}
	return "", access.Object{}, false
}

// Permissions lists what the viewer may do to an object that he sees.
func Permissions(v *viewer.Viewer, n ent.Noder) []access.Operation {
	e, on, ok := Of(n)
	if !ok || v == nil {
		return []access.Operation{}
	}
	u, isUser := n.(*ent.User)
	above := isUser && u.ID != v.User && Above(v, u)
	list := []access.Operation{}
	for _, op := range access.Operations() {
		// What is seen is read; by which rule is the rows' business.
		if op == access.Read || !above && v.May(op, e, on) {
			list = append(list, op)
		}
	}
	return list
}

// Above tells whether a user's built-in role is one that the viewer has no say
// over: superadmins and monitors are for superadmins.
func Above(v *viewer.Viewer, u *ent.User) bool {
	return !v.Superadmin() && slices.Contains([]user.Role{user.RoleSuperadmin, user.RoleMonitor}, u.Role)
}

func value(u *uuid.UUID) uuid.UUID {
	if u == nil {
		return uuid.Nil
	}
	return *u
}
