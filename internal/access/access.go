// Package access defines who can do which operation on which kind of object: the built-in roles as
// one table, custom roles as grants, and token scopes, which restrict both. Package viewer uses it
// for decisions, which ent's row rules and the manager's services request. An operation that the
// table does not allow is denied.
package access

import (
	"slices"

	"github.com/google/uuid"
)

// Entity is a kind of object with permissions.
type Entity string

// The entities. Rows that belong to an object (a session's kernels, a project's memberships)
// have its permissions.
const (
	Domain         Entity = "domain"
	Project        Entity = "project"
	User           Entity = "user"
	Credential     Entity = "credential" // logins, tokens, keypairs, SSH keys
	Invitation     Entity = "invitation"
	Provider       Entity = "identity_provider"
	Role           Entity = "role"
	ResourcePolicy Entity = "resource_policy"
	ResourceGroup  Entity = "resource_group"
	ResourcePreset Entity = "resource_preset"
	Agent          Entity = "agent"
	Registry       Entity = "registry"
	Image          Entity = "image"
	Volume         Entity = "volume"
	ObjectStorage  Entity = "object_storage"
	Session        Entity = "session"
	Template       Entity = "session_template"
	Deployment     Entity = "deployment"
	Vfolder        Entity = "vfolder"
	Task           Entity = "task"
	Audit          Entity = "audit"
	System         Entity = "system" // retention and other settings of the cluster
)

// Operation is an operation on an object.
type Operation string

// The operations. The first four are the same for every kind of object, and the others belong
// to one or a few kinds.
const (
	Read          Operation = "read"
	Create        Operation = "create"
	Update        Operation = "update"
	Delete        Operation = "delete"
	Enter         Operation = "enter"          // a session: its terminal, commands and ports
	ReadFiles     Operation = "read_files"     // of a folder
	WriteFiles    Operation = "write_files"    // of a folder
	Impersonate   Operation = "impersonate"    // a user
	ManageMembers Operation = "manage_members" // of a project
	Grant         Operation = "grant"          // a role, and the use of a resource group or volume
	Transfer      Operation = "transfer"       // objects: list them, and copy them from and to folders
)

// Operations lists all, in the order of the page.
func Operations() []Operation {
	return append(slices.Clone(general), Enter, ReadFiles, WriteFiles, Impersonate, ManageMembers, Grant, Transfer)
}

var general = ops(Read, Create, Update, Delete)

// own are the operations that only some kinds of objects have.
var own = map[Entity][]Operation{
	Project: ops(ManageMembers), User: ops(Impersonate), Role: ops(Grant), ResourceGroup: ops(Grant),
	Volume: ops(Grant), ObjectStorage: ops(Transfer), Session: ops(Enter), Vfolder: ops(ReadFiles, WriteFiles),
}

// OperationsOn lists the operations that a role can allow on a kind of object.
func OperationsOn(e Entity) []Operation { return append(slices.Clone(general), own[e]...) }

// Applies reports whether a role can allow an operation on a kind of object.
func Applies(op Operation, e Entity) bool {
	return slices.Contains(general, op) || slices.Contains(own[e], op)
}

// acts are the general operations that exist on each kind of object itself; objects that are not
// in the table can only be read. Starting a session or a deployment is an operation on its project.
var acts = map[Entity][]Operation{
	Domain: general, Project: general, User: general, Role: general, ResourcePolicy: general, ResourceGroup: general,
	ResourcePreset: general, Agent: ops(Read, Update), Registry: general, Image: general, ObjectStorage: general,
	Session: ops(Read, Update, Delete), Template: general, Deployment: ops(Read, Update, Delete), Vfolder: general, Task: ops(Read, Update),
}

// Acts reports whether an operation exists on a kind of object.
func Acts(op Operation, e Entity) bool {
	return op == Read || slices.Contains(acts[e], op) || slices.Contains(own[e], op)
}

// Entities lists all, in the order of the page.
func Entities() []Entity {
	return []Entity{
		Domain, Project, User, Credential, Invitation, Provider, Role, ResourcePolicy, ResourceGroup, ResourcePreset,
		Agent, Registry, Image, Volume, ObjectStorage, Session, Template, Deployment, Vfolder, Task, Audit, System,
	}
}

// Permissions are the operations of a custom role, per entity.
type Permissions map[Entity][]Operation

// Scope is the kind of object on which a role is granted.
type Scope string

// The scopes.
const (
	OnSystem  Scope = "system"
	OnDomain  Scope = "domain"
	OnProject Scope = "project"
	OnObject  Scope = "object"
)

// RoleGrant is a custom role on a scope.
type RoleGrant struct {
	Scope       Scope       `json:"scope"`
	ID          uuid.UUID   `json:"id"`
	Permissions Permissions `json:"permissions"`
}

// Object is an object's id and the scopes that it belongs to. Fields that do not apply are
// zero.
type Object struct {
	ID, Domain, Project, Owner uuid.UUID
	// Members is the permission of the project's members on a folder; "" for other objects.
	Members FolderPermission
}

// Covers reports whether the grant allows op on an object.
func (g RoleGrant) Covers(op Operation, e Entity, on Object) bool {
	if !slices.Contains(g.Permissions[e], op) {
		return false
	}
	if op == Create && g.Scope != OnSystem && g.ID == on.ID { // an object is not created in itself
		return false
	}
	switch g.Scope {
	case OnSystem:
		return true
	case OnDomain:
		return g.ID != uuid.Nil && (g.ID == on.Domain || e == Domain && g.ID == on.ID)
	case OnProject:
		return g.ID != uuid.Nil && (g.ID == on.Project || e == Project && g.ID == on.ID)
	case OnObject:
		return g.ID != uuid.Nil && g.ID == on.ID
	}
	return false
}

// Relation is the relation of a user to an object, by the built-in roles.
type Relation string

// The relations of the table.
const (
	Anyone      Relation = "anyone" // logged in
	Owner       Relation = "owner"  // it is theirs, or it is the user
	Reader      Relation = "reader" // of a folder, as FolderPermission has it
	Writer      Relation = "writer"
	Keeper      Relation = "keeper"
	Member      Relation = "member"       // of its project
	Lead        Relation = "lead"         // admin of its project
	Belongs     Relation = "belongs"      // to its domain
	DomainAdmin Relation = "domain_admin" // of its domain
)

func ops(list ...Operation) []Operation { return list }

// Private reports whether a role alone does not allow an operation: access to the inside of a
// session, a folder or an object storage. Superadmins, too, need to be its owner, to have a
// custom role, or to act as a user who can, which the audit log records.
func Private(op Operation) bool {
	return slices.Contains([]Operation{Enter, ReadFiles, WriteFiles, Transfer}, op)
}

// builtin are the permissions of the built-in roles. In addition, superadmins can do
// everything that is not Private, and monitors can read everything.
var builtin = map[Entity]map[Relation][]Operation{
	Domain: {Belongs: ops(Read)},
	Project: {
		Member: ops(Read), Lead: ops(Read, Update, ManageMembers),
		DomainAdmin: ops(Read, Create, Update, Delete, ManageMembers),
	},
	User:           {Owner: ops(Read, Update), DomainAdmin: general},
	Credential:     {Owner: general, DomainAdmin: ops(Delete)},
	Invitation:     {DomainAdmin: ops(Read, Create, Delete)},
	Role:           {},
	ResourcePolicy: {},
	ResourcePreset: {Anyone: ops(Read)},
	Registry:       {Anyone: ops(Read)},
	// An image that was made of a session belongs to a user and can be shared with a project.
	Image:  {Anyone: ops(Read), Owner: ops(Read, Update, Delete), DomainAdmin: ops(Read, Delete)},
	Volume: {Anyone: ops(Read)},
	// A user's own storage belongs to no domain.
	ObjectStorage: {
		Owner:   ops(Read, Create, Update, Delete, Transfer),
		Belongs: ops(Read, Transfer), DomainAdmin: ops(Read, Create, Update, Delete, Transfer),
	},
	Session: {
		Owner: ops(Read, Create, Update, Delete, Enter),
		Lead:  ops(Read, Update, Delete), DomainAdmin: ops(Read, Update, Delete),
	},
	// A template belongs to a user or to a project.
	Template: {
		Owner: general, Member: ops(Read), Lead: general, DomainAdmin: ops(Read, Delete),
	},
	// A deployment belongs to a user. Who can read it can send requests to it; its row says whether those are the
	// members of the project.
	Deployment: {
		Owner: general, Lead: ops(Read, Update, Delete), DomainAdmin: ops(Read, Update, Delete),
	},
	Vfolder: {
		Reader: ops(Read, ReadFiles), Writer: ops(Read, ReadFiles, WriteFiles), Keeper: ops(Read, Delete, ReadFiles, WriteFiles),
		Owner:       ops(Read, Create, Update, Delete, ReadFiles, WriteFiles),
		Lead:        ops(Read, Create, Update, Delete, ReadFiles, WriteFiles),
		DomainAdmin: general,
	},
	Task:  {Owner: ops(Read, Update), DomainAdmin: ops(Read, Update)},
	Audit: {Owner: ops(Read), DomainAdmin: ops(Read)},
}

// Builtin reports whether a built-in relation allows op.
func Builtin(e Entity, r Relation, op Operation) bool { return slices.Contains(builtin[e][r], op) }
