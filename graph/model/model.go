// Package model defines the GraphQL objects that are neither an entity nor a struct of a
// service.
package model

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/scheduler"
)

// Server describes the manager to its clients.
type Server struct {
	Version     string
	MaxPageSize int
	Currency    string
	SSH         *app.SSH
}

// Viewer is the logged-in user.
type Viewer struct {
	User            *ent.User
	InitialPassword bool
}

// ViewerPayload is the result of a change of the viewer's own account.
type ViewerPayload struct{ Viewer *Viewer }

// DeviceHolder is a session that uses a part of a device.
type DeviceHolder struct {
	Slot    string
	Amount  string
	Since   time.Time
	Session *ent.Session
	Mine    bool
}

// DeviceLink is a link between two devices, seen from one end.
type DeviceLink struct {
	report.Link
	Agent  uuid.UUID
	PeerID string // the agent's name of the other end
}

// DeviceCounter is the amount of a shared counter that a device uses, and the total.
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

// PendingReport is the reason why a session waits, or would wait.
type PendingReport struct {
	*report.Pending
	Session uuid.UUID         // zero for a dry run
	Trial   *scheduler.DryRun // the dry run, or nil
}

// Queue is a page of the pending sessions of a resource group.
type Queue struct {
	Entries    []*QueueEntry
	TotalCount int
	EndCursor  *string
}

// QueueEntry is a pending session, with the fields that the viewer can see.
type QueueEntry struct {
	ID             uuid.UUID // zero if the viewer cannot see the session
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
