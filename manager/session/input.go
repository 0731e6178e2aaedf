package session

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/resource"
)

// MountInput names a folder and where a session sees it.
type MountInput struct {
	Vfolder  string // id or name
	Target   *string
	Subpath  *string
	ReadOnly *bool
}

// CreateSessionInput is what a user asks for.
type CreateSessionInput struct {
	Name            *string
	Image           string
	Type            *session.Type
	Slots           resource.Slots // of each kernel
	Kernels         *int
	Command         []string
	BootstrapScript *string
	Environment     map[string]string
	Mounts          []MountInput
	AutoMount       *bool // false: without the folders that are mounted without being asked
	Project         *uuid.UUID
	ResourceGroup   *uuid.UUID
	Priority        *int
	StartsAt        *time.Time
	DependsOn       []uuid.UUID
	Agents          []uuid.UUID
	StrictAgents    *bool
	Lifetime        *int // seconds
	Preemptible     *bool
	SessionGroup    *uuid.UUID
	ShmBytes        *int64
	DiskBytes       *int64 // of each kernel
	IdempotencyKey  *string
}

// TerminateSessionInput names the session to end.
type TerminateSessionInput struct {
	ID    uuid.UUID
	Force *bool
}

// RenameSessionInput gives a session another name.
type RenameSessionInput struct {
	ID   uuid.UUID
	Name string
}

// UpdatePendingSessionInput changes what a session asks for that waits; what is
// nil stays.
type UpdatePendingSessionInput struct {
	ID            uuid.UUID
	Slots         resource.Slots
	ResourceGroup *uuid.UUID
	StrictAgents  *bool
}

// SessionPayload answers the mutations of a session.
type SessionPayload struct {
	Session *ent.Session
}
