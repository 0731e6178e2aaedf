// Package plan decides which pending sessions start where: a snapshot of the
// cluster in, placements on concrete devices and reasons for waiting out. It
// does no I/O and reads no clock, so the scheduler, a dry run, a simulation and
// a benchmark get the same answer from it.
//
// The rules. Requests of a resource group are looked at by priority, then as its
// Order says. One that is over a limit of its user, project or domain waits and
// is in no one's way. The others take the agents that their group's Strategy
// prefers among those that have room; all kernels of a session start or none
// (see gang.go and crew.go).
// What does not fit lets later requests pass, until it heads its queue for
// HoldAfter: from then on the agents it would need are held for it, and only what
// is not in its way gets room there (see reserve.go). Where its group says so,
// sessions of a lower priority end for it (see preempt.go).
//
// How a slot is taken depends on its name. Whole devices (*.device) must be
// entirely free. Parts (*.shares, *.mem of a device) sit on one device, or,
// beyond what one device has, as their group splits (see split.go). Parts of one
// device that do not exclude each other sit on the same one. Everything else (cpu,
// mem, counts) may be put together from several devices of an agent. Partitions
// of a device draw on what they share (see counters.go). Of devices that would
// do as well those are taken that are nearest to each other, with the cpu and
// memory that is nearest to them (see topology.go).
package plan

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// DefaultHoldAfter is how long the head of a queue lets others pass.
const DefaultHoldAfter = 10 * time.Minute

// Snapshot is all that a decision depends on. Plan does not change it.
type Snapshot struct {
	Now       time.Time
	Groups    []Group
	Agents    []Agent
	SlotTypes []SlotType
	Limits    []Limit
	Pending   []Request
	Running   []Running // sessions that hold something; none where no one has to know
	Holdings  []Holding // what live sessions have, for OrderDRF and OrderFairShare
	Shares    []Share   // weights and usage, for the same
	// Demand is what groups are asked for as experience tells. A group without
	// any goes by what is pending.
	Demand []Demand
	// Networked is how many kernels a session over several agents may have, as far
	// as there are networks for such; nil is any number.
	Networked *int
}

// Group is a resource group.
type Group struct {
	ID   uuid.UUID
	Name string
	// HoldAfter is the wait after which the head of the queue stops being
	// passed; 0 is DefaultHoldAfter, negative never.
	HoldAfter time.Duration
	Strategy  Strategy // StrategyPack when empty
	Split     Split    // SplitFill when empty
	Topology  Topology // TopologyPrefer when empty
	Order     Order
	Sharing   Sharing
	// Preemption is nil where no session is ended for another.
	Preemption *Preemption
}

// KindUnique is the kind of a slot with at most one holder on a device.
const KindUnique = "unique"

// SlotType is what is known of a slot beside its name.
type SlotType struct {
	Name          string
	Kind          string
	ExclusiveWith []string // not on one device with it; a * at the end stands for any ending
	Quantum       int64    // smallest step, 1 when 0
	Unified       bool     // a name of its device's one amount; see unified.go
}

// Agent is one worker machine.
type Agent struct {
	ID           uuid.UUID
	Name         string
	Group        uuid.UUID
	Schedulable  bool
	Closed       Closed // why it is not: ClosedCordoned when empty
	Because      string // as who closed it said
	Architecture string
	Volumes      []string        // mounted there
	Images       map[string]bool // that it has
	Devices      []Device
	Counts       report.Counts   // the only amounts of slots that a kernel gets there
	Counters     report.Counters // of hardware that its devices draw on
	Links        []report.Link   // between its devices, by their names
	LastUsed     time.Time       // when it last got a kernel
	// Alone is why kernels there reach none on other agents, so that a session is
	// there with all of its kernels or with none; empty: they do.
	Alone string
}

// Closed is why nothing new lands on an agent: the check that drops it.
type Closed string

// The reasons for that.
const (
	ClosedCordoned Closed = "cordoned"
	ClosedDraining Closed = "draining"
	ClosedLost     Closed = "lost"  // out of reach, or starting
	ClosedUnfit    Closed = "unfit" // a condition of its machine holds
)

// Device is one schedulable unit of an agent, cpu and mem included.
type Device struct {
	ID          uuid.UUID
	Allocatable bool
	Healthy     bool
	Capacity    resource.Slots
	Used        resource.Slots      // by live allocations
	Name        string              // what Parent and the links of its agent call it
	Parent      string              // the device that it is cut from, if it is a partition
	Consumes    []report.CounterUse // while any of it is in use
	Groups      []string            // of devices that belong together: a board, a tray
	PCIeRoot    string
	NUMANode    *int // nil: unknown
}

// Request is a pending session.
type Request struct {
	SessionID uuid.UUID
	Owner     uuid.UUID
	Project   uuid.UUID
	Domain    uuid.UUID
	Group     uuid.UUID
	Keypair   uuid.UUID // that asked for it, if any
	Priority  int       // higher first
	Created   time.Time
	RetryAt   time.Time // not before, and neither before StartsAt
	StartsAt  time.Time // asked for
	After     []string  // names of sessions that have to succeed first
	Kernels   []KernelRequest
	// Architecture is empty when any will do.
	Architecture string
	Volumes      []string // must be mounted on the agent
	Image        string   // of equally good agents one that has it is taken
	// Agents were asked for: they are taken first or, when Strict, alone.
	Agents []uuid.UUID
	Strict bool
	// AvoidAgents failed it lately and are taken last.
	AvoidAgents []uuid.UUID
	// Lifetime is after what time it has surely given back what it holds; 0 is
	// never.
	Lifetime time.Duration
	Together *Together    // with which sessions it belongs
	Room     *report.Room // that is being made for it
}

// KernelRequest is one kernel of a session.
type KernelRequest struct {
	ID    uuid.UUID
	Slots resource.Slots
}

// Scopes of a Limit.
const (
	ScopeUser    = "user"
	ScopeKeypair = "keypair"
	ScopeProject = "project"
	ScopeDomain  = "domain"
)

// Limit is what a policy grants to a user, project or domain, and what is used.
// That of a keypair binds what is asked for with it and counts all that its
// owner holds.
type Limit struct {
	Scope                  string
	ID                     uuid.UUID
	Owner                  uuid.UUID // of a keypair
	Group, Within          uuid.UUID // only in a resource group, only in a project; zero: anywhere
	Policy                 string    // its name
	Holder                 string    // name of ID
	GroupName, ProjectName string    // of Group and Within
	Total                  resource.Slots
	UnlistedZero           bool // slots that Total misses are not allowed at all
	MaxSessions            *int
	Used                   resource.Slots
	Sessions               int
}

// Decision is about one request: either Assignments or Waiting is set. Victims
// are to end, so that what waits can start.
type Decision struct {
	SessionID   uuid.UUID
	Assignments []Assignment
	Waiting     *report.Pending
	Victims     []uuid.UUID
}

// Placed reports whether the session can start.
func (d *Decision) Placed() bool { return d.Waiting == nil }

// Assignment is the place of one kernel.
type Assignment struct {
	KernelID uuid.UUID
	AgentID  uuid.UUID
	Allocs   []Alloc
}

// Alloc is a part of a device.
type Alloc struct {
	DeviceID uuid.UUID
	Slot     string
	Amount   int64
}

// Plan decides on every pending request, in the order of the queue.
func Plan(s *Snapshot) []Decision { return inOrder(s, newQueue(s).decide) }
