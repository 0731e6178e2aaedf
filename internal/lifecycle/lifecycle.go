// Package lifecycle is the state machine of sessions and their kernels: the states, the allowed
// moves, and the deadline of each transient state.
package lifecycle

import (
	"slices"
	"time"
)

// SessionTypes lists the types of sessions. Those of the type inference are the replicas of deployments.
var SessionTypes = append(slices.Clone(UserTypes), "inference")

// UserTypes lists the types of sessions that users start, and that idle checks apply to.
var UserTypes = []string{"interactive", "batch"}

// Status is a state of a session or kernel.
type Status string

// The states, in the order of life.
const (
	Pending     Status = "pending"     // waits for resources
	Scheduled   Status = "scheduled"   // devices are allocated
	Preparing   Status = "preparing"   // its agents fetch the image
	Prepared    Status = "prepared"    // the agents have the image
	Creating    Status = "creating"    // its containers start
	Running     Status = "running"     // its main process runs
	Terminating Status = "terminating" // asked to end
	Terminated  Status = "terminated"  // ended
	Cancelled   Status = "cancelled"   // ended before it ever started
	Error       Status = "error"       // the platform could not run it
)

// All lists the states in the order of life.
var All = []Status{
	Pending, Scheduled, Preparing, Prepared, Creating, Running,
	Terminating, Terminated, Cancelled, Error,
}

// Occupying lists the states that hold resources.
var Occupying = []Status{Scheduled, Preparing, Prepared, Creating, Running, Terminating}

// moves lists, for each state, the states that can follow it. An attempt that failed before Running
// returns to Pending, and so does a session that is to run elsewhere, after its containers have
// ended.
var moves = map[Status][]Status{
	Pending:     {Scheduled, Cancelled, Error},
	Scheduled:   {Preparing, Prepared, Creating, Pending, Terminating, Error}, // Creating: its agents have the image
	Preparing:   {Prepared, Pending, Terminating, Error},
	Prepared:    {Creating, Pending, Terminating, Error},
	Creating:    {Running, Pending, Terminating, Error},
	Running:     {Terminating, Terminated},
	Terminating: {Terminated, Cancelled, Error, Pending},
}

// deadlines limit each transient state. Pending and Running have no deadline.
var deadlines = map[Status]time.Duration{
	Scheduled:   time.Minute,      // one call to a live agent
	Preparing:   30 * time.Minute, // a 100 GB image over a slow registry
	Prepared:    time.Minute,
	Creating:    5 * time.Minute, // devices may need a reset first
	Terminating: 2 * time.Minute, // ten times the default grace period
}

// CanMove reports whether a session can move from one state to the other.
func CanMove(from, to Status) bool { return slices.Contains(moves[from], to) }

// Deadline returns the longest duration of s, or 0 without a limit.
func Deadline(s Status) time.Duration { return deadlines[s] }

// Final reports whether s is a final state.
func (s Status) Final() bool { return s == Terminated || s == Cancelled || s == Error }

// Values lists the states for ent's enum fields.
func (Status) Values() []string {
	var v []string
	for _, s := range All {
		v = append(v, string(s))
	}
	return v
}
