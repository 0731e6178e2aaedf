// Package id creates the UUIDs of all entities. They have version 7, so that they sort by time, and
// contain the kind, from which node(id) knows the table.
package id

import (
	"fmt"

	"github.com/google/uuid"
)

// Kind is the kind of an entity. Byte 8 of an id contains a kind below 64 (in the low six bits; the
// two high bits are the UUID variant). For a larger kind it contains the value wide, and byte 9
// contains the kind.
type Kind byte

// wide and firstWide: see Kind.
const (
	wide      = 62
	firstWide = 64
)

// Kinds are stored in ids: never renumber.
const (
	Domain             Kind = 1
	Project            Kind = 2
	User               Kind = 3
	Membership         Kind = 4
	AccessToken        Kind = 5
	LoginSession       Kind = 6
	ResourcePolicy     Kind = 7
	ResourceGroup      Kind = 8
	Agent              Kind = 9
	Device             Kind = 10
	SlotType           Kind = 11
	Registry           Kind = 12
	Image              Kind = 13
	Session            Kind = 14
	Kernel             Kind = 15
	Allocation         Kind = 16
	SessionEvent       Kind = 17
	StorageProxy       Kind = 18
	Volume             Kind = 19
	QuotaScope         Kind = 20
	Vfolder            Kind = 21
	SessionMount       Kind = 22
	AuditEntry         Kind = 23
	JoinToken          Kind = 24
	Keypair            Kind = 25
	SSHKey             Kind = 26
	LoginAttempt       Kind = 27
	IdentityProvider   Kind = 28
	Invitation         Kind = 29
	Role               Kind = 30
	RoleGrant          Kind = 31
	PolicyAttachment   Kind = 32
	GroupGrant         Kind = 33
	VolumeGrant        Kind = 34
	ResourcePreset     Kind = 35
	Task               Kind = 36
	SessionDependency  Kind = 37
	SessionGroup       Kind = 38
	ShareWeight        Kind = 39
	IdleChecker        Kind = 40
	IdleBinding        Kind = 41
	VfolderShare       Kind = 42
	VfolderTicket      Kind = 43
	ObjectStorage      Kind = 44
	Chat               Kind = 45
	ChatTurn           Kind = 46
	ChatAnswer         Kind = 47
	AppShare           Kind = 48
	ChatEndpoint       Kind = 49
	SessionArray       Kind = 50
	SessionTemplate    Kind = 51
	Deployment         Kind = 52
	DeploymentRevision Kind = 53
	DeploymentReplica  Kind = 54
	DeploymentKey      Kind = 55
	ScanResult         Kind = 56
	DeploymentEvent    Kind = 59
	ImageVersion       Kind = 57
	ImageCopy          Kind = 61
	ImageBuild         Kind = 58
	Price              Kind = 64
	Budget             Kind = 65
	Other              Kind = 63
	Notice             Kind = 70
	NoticeChannel      Kind = 71
	Announcement       Kind = 72
	NoticeDelivery     Kind = 73
	PromptRecord       Kind = 100
)

// New returns a fresh id of the kind.
func New(k Kind) uuid.UUID {
	u := uuid.Must(uuid.NewV7())
	low := byte(k)
	if k >= firstWide {
		low, u[9] = wide, byte(k)
	}
	u[8] = u[8]&0xc0 | low&0x3f
	return u
}

// Maker returns a function that calls New with a kind, for defaults in ent schemas.
func Maker(k Kind) func() uuid.UUID {
	return func() uuid.UUID { return New(k) }
}

// KindOf returns the kind of an id that New created.
func KindOf(u uuid.UUID) Kind {
	if k := u[8] & 0x3f; k != wide {
		return Kind(k)
	}
	return Kind(u[9])
}

// Parse reads an id and checks its kind.
func Parse(k Kind, s string) (uuid.UUID, error) {
	u, err := uuid.Parse(s)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%q is not an id", s)
	}
	if KindOf(u) != k {
		return uuid.Nil, fmt.Errorf("%q is an id of another kind", s)
	}
	return u, nil
}
