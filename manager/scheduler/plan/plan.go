// Package plan decides which pending sessions start where. Its input is a snapshot of the
// cluster; its output is placements on devices, and the reasons why the other sessions wait.
// It does no I/O and reads no clock, so the scheduler, a dry run, a simulation and a benchmark
// get the same result.
//
// The requests of a resource group are considered by priority, then by the group's Order. A
// request over a limit of its user, project or domain waits and does not block others. The
// others are placed on agents that the group's Strategy prefers; all kernels of a session
// start together or not at all (see gang.go and gangsearch.go). A request that does not fit is
// passed by later ones until it has been at the head of its queue for HoldAfter. From then on,
// the agents that it needs are reserved for it, and only requests that do not delay it are
// placed there (see reserve.go). If the group allows preemption, sessions of a lower priority
// are ended for it (see preempt.go).
//
// The name of a slot determines how it is taken. Whole devices (*.device) must be entirely
// free. Parts (*.shares, *.mem of a device) come from one device or, beyond the size of one
// device, are split as the group configures (see split.go). Different slots of one device that
// do not exclude each other come from the same device. Other slots (cpu, mem, counts) can come
// from several devices of an agent. Partitions of a device share its hardware (see
// counters.go). Among equally suitable devices, the plan takes those nearest to each other,
// and the cpu and memory nearest to them (see topology.go).
package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// DefaultHoldAfter is how long requests can pass the head of a queue.
const DefaultHoldAfter = 10 * time.Minute

// Snapshot is the complete input of a decision. Plan does not change it.
type Snapshot struct {
	Now       time.Time
	Groups    []Group
	Agents    []Agent
	SlotTypes []SlotType
	Limits    []Limit
	Pending   []Request
	Running   []Running // sessions with allocations; may be empty if no option needs them
	Holdings  []Holding // allocations of live sessions, for OrderDRF and OrderFairShare
	Shares    []Share   // weights and usage, for the same
	// Demand is the expected demand of groups. For a group without any, the pending requests
	// count.
	Demand []Demand
	// Networked is the largest number of kernels of a session over several agents for which a
	// network is left; nil: any number.
	Networked *int
}

// Group is a resource group.
type Group struct {
	ID   uuid.UUID
	Name string
	// HoldAfter is how long requests can pass the head of the queue; 0 means DefaultHoldAfter,
	// negative means always.
	HoldAfter time.Duration
	Strategy  Strategy // StrategyPack when empty
	Split     Split    // SplitFill when empty
	Topology  Topology // TopologyPrefer when empty
	Order     Order
	Sharing   Sharing
	// Preemption is nil if sessions are not ended for others.
	Preemption *Preemption
}

// KindUnique is the kind of a slot that only one kernel can use on a device.
const KindUnique = "unique"

// SlotType describes a slot.
type SlotType struct {
	Name          string
	Kind          string
	ExclusiveWith []string // slots that cannot be used on the same device; a trailing * matches any suffix
	Quantum       int64    // smallest step, 1 when 0
	Unified       bool     // one of several names for the same capacity
}

// Layers knows the parts of images on agents, from memory. Agents are compared, so it must be comparable.
type Layers interface {
	// Lacks returns the bytes that an agent must fetch to have an image; known is false if no agent has it.
	Lacks(agent, image string) (bytes int64, known bool)
}

// Agent is one worker machine.
type Agent struct {
	ID           uuid.UUID
	Name         string
	Group        uuid.UUID
	Schedulable  bool
	Closed       Closed // why it is not schedulable; ClosedCordoned if empty
	Because      string // the administrator's reason
	Architecture string
	Volumes      []string        // mounted there
	Images       map[string]bool // present on the agent
	// Layers knows what the agent lacks of images that it does not have; nil: that is not known.
	Layers   Layers
	Devices  []Device
	Counts   report.Counts   // the only amounts that a kernel can have there
	Counters report.Counters // of hardware that its devices share
	Links    []report.Link   // between its devices, by their names
	LastUsed time.Time       // when a kernel was last placed on it
	// Alone is the reason why kernels there cannot reach kernels on other agents, so that only
	// whole sessions can run there; empty: they can.
	Alone string
}

// Closed is the reason why an agent takes no new sessions. It is also the name of the check.
type Closed string

// The reasons.
const (
	ClosedCordoned Closed = "cordoned"
	ClosedDraining Closed = "draining"
	ClosedLost     Closed = "lost"  // unreachable, or starting
	ClosedUnfit    Closed = "unfit" // a condition keeps new sessions away
)

// Device is one schedulable unit of an agent, cpu and mem included.
type Device struct {
	ID          uuid.UUID
	Allocatable bool
	Healthy     bool
	Capacity    resource.Slots
	Used        resource.Slots      // by live allocations
	Name        string              // as Parent and the links of its agent name it
	Parent      string              // the device that a partition is part of
	Consumes    []report.CounterUse // while any of it is in use
	Groups      []string            // of devices that belong together, such as a board or tray
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
	Keypair   uuid.UUID // of the request, if any
	Priority  int       // higher first
	Created   time.Time
	RetryAt   time.Time // earliest time of a retry
	StartsAt  time.Time // requested earliest start
	After     []string  // names of sessions and arrays that must succeed first
	Replaces  string    // name of the session that must end first, because this one replaces it
	Kernels   []KernelRequest
	// Architecture is empty if any is suitable.
	Architecture string
	Volumes      []string // must be mounted on the agent
	Image        string   // agents that have it, or most of it, are preferred among equals
	// Agents are the requested agents: preferred or, if Strict, required.
	Agents []uuid.UUID
	Strict bool
	// AvoidAgents are agents on which the session recently failed; they are used last.
	AvoidAgents []uuid.UUID
	// Lifetime is the time after which the session has certainly ended; 0 is never.
	Lifetime time.Duration
	Together *Together    // its session group
	Room     *report.Room // promised devices, while other sessions are being ended for it
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

// Limit is the limits of a policy for a user, project or domain, with the usage. The limit of
// a keypair applies to its requests and counts all sessions of its owner.
type Limit struct {
	Scope                  string
	ID                     uuid.UUID
	Owner                  uuid.UUID // of a keypair
	Group, Within          uuid.UUID // restriction to a resource group, to a project; zero: none
	Policy                 string    // name
	Holder                 string    // name of ID
	GroupName, ProjectName string    // of Group and Within
	Total                  resource.Slots
	UnlistedZero           bool // slots that Total does not list are not allowed
	MaxSessions            *int
	Used                   resource.Slots
	Sessions               int
}

// Decision is the result for one request: either Assignments or Waiting is set. Victims are
// sessions to end so that it can start.
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

// Alloc is an amount of a device.
type Alloc struct {
	DeviceID uuid.UUID
	Slot     string
	Amount   int64
}

// Plan decides on every pending request, in the order of the queue.
func Plan(s *Snapshot) []Decision { return inOrder(s, newQueue(s).decide) }

// With returns the snapshot with a suggestion applied, except for the end of a session, which
// Without applies.
func With(s *Snapshot, session uuid.UUID, x Suggestion) *Snapshot {
	out := *s
	out.Pending = slices.Clone(s.Pending)
	for i := range out.Pending {
		if r := &out.Pending[i]; r.SessionID == session {
			x.change(r)
		}
	}
	return &out
}

// change applies a suggestion to a request.
func (x *Suggestion) change(r *Request) {
	if x.Slots != nil {
		r.Kernels = slices.Clone(r.Kernels)
		for i := range r.Kernels {
			r.Kernels[i].Slots = x.Slots.Clone()
		}
	}
	if x.Group != uuid.Nil {
		r.Group = x.Group
	}
	if x.AnyAgent {
		r.Strict = false
	}
}

// Without returns the snapshot after the end of a session.
func Without(s *Snapshot, x *Running) *Snapshot {
	out := *s
	freed := map[uuid.UUID]resource.Slots{}
	for _, h := range x.Holds {
		if freed[h.DeviceID] == nil {
			freed[h.DeviceID] = resource.Slots{}
		}
		freed[h.DeviceID][h.Slot] += h.Amount
	}
	out.Running = slices.DeleteFunc(slices.Clone(s.Running), func(r Running) bool { return r.SessionID == x.SessionID })
	out.Agents = slices.Clone(s.Agents)
	for i := range out.Agents {
		a := &out.Agents[i]
		if !slices.ContainsFunc(a.Devices, func(d Device) bool { return freed[d.ID] != nil }) {
			continue
		}
		a.Devices = slices.Clone(a.Devices)
		for j := range a.Devices {
			a.Devices[j].Used = less(a.Devices[j].Used, freed[a.Devices[j].ID])
		}
	}
	held := resource.Slots{}
	for _, h := range x.Holds {
		held[h.Slot] += h.Amount
	}
	out.Limits = slices.Clone(s.Limits)
	counted := &Request{Owner: x.Owner, Project: x.Project, Domain: x.Domain, Group: x.Group}
	for _, acc := range NewLedger(out.Limits).of(counted) {
		acc.Used = less(acc.Used, x.Slots)
		acc.Sessions--
	}
	given := resource.Slots{}
	given.Sub(held)
	out.Holdings = append(slices.Clone(s.Holdings), Holding{
		Group: x.Group, Domain: x.Domain, Project: x.Project, Owner: x.Owner, Slots: given,
	})
	return &out
}

// less returns a minus b, at least 0.
func less(a, b resource.Slots) resource.Slots {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	for name, amount := range b {
		if have, ok := out[name]; ok {
			out[name] = max(0, have-amount)
		}
	}
	return out
}
