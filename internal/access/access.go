// Package access says who may do what to which kind of object: the built-in
// roles as one table, custom roles as grants, tokens as scopes that narrow
// both. The viewer decides with it, ent's row rules and the manager's services
// ask the viewer. What the table does not allow is refused.
package access

import (
	"slices"

	"github.com/google/uuid"
)

// Entity is a kind of object that permissions are about.
type Entity string

// The entities. Rows that belong to an object (a session's kernels, a
// project's memberships) go with it.
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
	Vfolder        Entity = "vfolder"
	Task           Entity = "task"
	Audit          Entity = "audit"
	System         Entity = "system" // retention and other settings of the whole
)

// Operation is what may be done to an object.
type Operation string

// The operations. Special is, for a session, to enter it; for a folder, to read
// its files; for a user, to act as them; for a project, to choose its members;
// for a role, to grant it; for a resource group or volume, to say who uses it; for an
// object storage, to list its objects and to bring them from and to there.
// Write is, for a folder, to change its files.
const (
	Read    Operation = "read"
	Create  Operation = "create"
	Update  Operation = "update"
	Delete  Operation = "delete"
	Special Operation = "special"
	Write   Operation = "write"
)

// Operations lists all, in the order in which they are shown.
func Operations() []Operation { return []Operation{Read, Create, Update, Delete, Special, Write} }

// acts are the operations that there are on each kind of object by itself; what
// is not in the table is read only. To start a session is its project's matter.
var acts = map[Entity][]Operation{
	Domain: ops(Read, Create, Update, Delete), Project: allButWrite, User: allButWrite, Role: allButWrite,
	ResourcePolicy: ops(Read, Create, Update, Delete), ResourceGroup: allButWrite, ResourcePreset: ops(Read, Create, Update, Delete),
	Agent: ops(Read, Update), Registry: ops(Read, Create, Update, Delete), Image: ops(Read, Create, Delete), Volume: ops(Read, Special), ObjectStorage: allButWrite,
	Session: ops(Read, Update, Delete, Special), Vfolder: Operations(), Task: ops(Read, Update),
}

var allButWrite = ops(Read, Create, Update, Delete, Special)

// Acts reports whether an operation on a kind of object comes to anything.
func Acts(op Operation, e Entity) bool { return op == Read || slices.Contains(acts[e], op) }

// Entities lists all, in the order in which they are shown.
func Entities() []Entity {
	return []Entity{
		Domain, Project, User, Credential, Invitation, Provider, Role, ResourcePolicy, ResourceGroup, ResourcePreset,
		Agent, Registry, Image, Volume, ObjectStorage, Session, Vfolder, Task, Audit, System,
	}
}

// Permissions are the operations of a custom role, per entity.
type Permissions map[Entity][]Operation

// Scope is where a role is granted.
type Scope string

// The scopes.
const (
	OnSystem  Scope = "system"
	OnDomain  Scope = "domain"
	OnProject Scope = "project"
	OnObject  Scope = "object"
)

// Grant is a custom role on a scope, as its holder carries it.
type Grant struct {
	Scope       Scope       `json:"scope"`
	ID          uuid.UUID   `json:"id"`
	Permissions Permissions `json:"permissions"`
}

// Object is where an object stands: its id, and whom it belongs to. What does
// not apply is all zero.
type Object struct {
	ID, Domain, Project, Owner uuid.UUID
	// Members is what the members of the project may do with the folder; "" for
	// what is not a folder of a project.
	Members FolderPermission
}

// Covers reports whether the grant allows op on an object.
func (g Grant) Covers(op Operation, e Entity, on Object) bool {
	if !slices.Contains(g.Permissions[e], op) {
		return false
	}
	if op == Create && g.Scope != OnSystem && g.ID == on.ID { // what is there is not made in itself
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

// Relation is how a user stands to an object by the built-in roles.
type Relation string

// The relations of the table.
const (
	Anyone      Relation = "anyone" // logged in
	Owner       Relation = "owner"  // it is theirs, or they themselves
	Reader      Relation = "reader" // of a folder, as FolderPermission has it
	Writer      Relation = "writer"
	Keeper      Relation = "keeper"
	Member      Relation = "member"       // of its project
	Lead        Relation = "lead"         // admin of its project
	Belongs     Relation = "belongs"      // to its domain
	DomainAdmin Relation = "domain_admin" // of its domain
)

func ops(list ...Operation) []Operation { return list }

// Private tells what rank alone does not open: the inside of a session, a folder or
// an object storage. Superadmins, too, enter it as its owner, by a custom role, or by acting
// as someone who may, which the audit trail shows.
func Private(op Operation, e Entity) bool {
	return op == Special && (e == Session || e == Vfolder || e == ObjectStorage) || op == Write
}

// builtin is the whole of what the built-in roles allow, besides: superadmins
// do everything but what is Private, monitors read everything.
var builtin = map[Entity]map[Relation][]Operation{
	Domain:         {Belongs: ops(Read)},
	Project:        {Member: ops(Read), Lead: ops(Read, Update, Special), DomainAdmin: allButWrite},
	User:           {Owner: ops(Read, Update), DomainAdmin: ops(Read, Create, Update, Delete)},
	Credential:     {Owner: ops(Read, Create, Update, Delete), DomainAdmin: ops(Delete)},
	Invitation:     {DomainAdmin: ops(Read, Create, Delete)},
	Role:           {},
	ResourcePolicy: {},
	ResourcePreset: {Anyone: ops(Read)},
	Registry:       {Anyone: ops(Read)},
	Image:          {Anyone: ops(Read)},
	Volume:         {Anyone: ops(Read)},
	// One of a user stands in no domain: it is theirs alone.
	ObjectStorage: {Owner: allButWrite, Belongs: ops(Read, Special), DomainAdmin: allButWrite},
	Session:       {Owner: allButWrite, Lead: ops(Read, Update, Delete), DomainAdmin: ops(Read, Update, Delete)},
	Vfolder: {
		Reader: ops(Read, Special), Writer: ops(Read, Special, Write), Keeper: ops(Read, Delete, Special, Write),
		Owner: Operations(), Lead: Operations(),
		DomainAdmin: ops(Read, Create, Update, Delete),
	},
	Task:  {Owner: ops(Read, Update), DomainAdmin: ops(Read, Update)},
	Audit: {Owner: ops(Read), DomainAdmin: ops(Read)},
}

// Builtin reports whether a built-in relation allows op.
func Builtin(e Entity, r Relation, op Operation) bool { return slices.Contains(builtin[e][r], op) }
