// Package model holds the few GraphQL objects that are neither an entity nor
// a service's struct.
package model

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/scheduler"
)

// Server describes the manager to its clients.
type Server struct {
	Version     string
	MaxPageSize int
}

// Viewer is the logged-in user.
type Viewer struct {
	User            *ent.User
	InitialPassword bool
}

// ViewerPayload answers a change of one's own account.
type ViewerPayload struct{ Viewer *Viewer }

// DeviceHolder is who holds a part of a device.
type DeviceHolder struct {
	Slot    string
	Amount  string
	Since   time.Time
	Session *ent.Session
	Mine    bool
}

// DeviceLink is a link as one of its ends sees it.
type DeviceLink struct {
	report.Link
	Agent  uuid.UUID
	PeerID string // the other end, as the agent names it
}

// DeviceCounter is what a device draws of what there is in all.
type DeviceCounter struct {
	Set, Name     string
	Amount, Total int64
}

// KernelStats are the samples of one kernel.
type KernelStats struct {
	KernelID uuid.UUID
	At       *time.Time
	Metrics  []report.Metric
}

// LogChunk is a piece of a kernel's log.
type LogChunk struct {
	Text       string
	Offset     int64
	NextOffset int64
}

// PendingReport is why a session waits, or would wait.
type PendingReport struct {
	*report.Pending
	Session uuid.UUID         // zero in a dry run
	Trial   *scheduler.DryRun // that it is of
}

// Queue is a page of what waits in a resource group.
type Queue struct {
	Entries    []*QueueEntry
	TotalCount int
	EndCursor  *string
}

// QueueEntry is a session that waits, as far as the viewer may know of it.
type QueueEntry struct {
	ID             uuid.UUID // zero when out of sight
	Position       int
	Mine           bool
	Priority       int
	WaitingSince   time.Time
	Stage          string
	Why            string
	Holds          int
	Order          *report.Ordering
	EstimatedStart *time.Time
}
