// Package lifecycle is the state machine that sessions and their kernels
// share: which states there are, which moves are allowed, and how long each
// transient state may last before it is given up.
package lifecycle

import (
	"slices"
	"time"
)

// SessionTypes lists the types of sessions.
var SessionTypes = []string{"interactive", "batch"}

// Status is a state of a session or kernel.
type Status string

// The states, in the order of life.
const (
	Pending     Status = "pending"     // waits for resources
	Scheduled   Status = "scheduled"   // devices are allocated
	Preparing   Status = "preparing"   // its agents fetch the image
	Prepared    Status = "prepared"    // the image is there
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

// moves lists, per state, the states that may follow it. An attempt that
// failed before Running goes back to Pending; so does what is to run elsewhere,
// once its containers have ended.
var moves = map[Status][]Status{
	Pending:     {Scheduled, Cancelled, Error},
	Scheduled:   {Preparing, Prepared, Creating, Pending, Terminating, Error}, // Creating: its agents have the image
	Preparing:   {Prepared, Pending, Terminating, Error},
	Prepared:    {Creating, Pending, Terminating, Error},
	Creating:    {Running, Pending, Terminating, Error},
	Running:     {Terminating, Terminated},
	Terminating: {Terminated, Cancelled, Error, Pending},
}

// deadlines bound each transient state. Pending and Running have none of
// their own: a queue may be long, and work takes what it takes.
var deadlines = map[Status]time.Duration{
	Scheduled:   time.Minute,      // one call to a live agent
	Preparing:   30 * time.Minute, // a 100 GB image over a slow registry
	Prepared:    time.Minute,
	Creating:    5 * time.Minute, // devices may need a reset first
	Terminating: 2 * time.Minute, // ten times the default grace period
}

// CanMove reports whether from may be followed by to.
func CanMove(from, to Status) bool { return slices.Contains(moves[from], to) }

// Deadline returns how long s may last, or 0 when it has no bound.
func Deadline(s Status) time.Duration { return deadlines[s] }

// Final reports whether nothing follows s.
func (s Status) Final() bool { return s == Terminated || s == Cancelled || s == Error }

// Values lists the states for ent's enum fields.
func (Status) Values() []string {
	var v []string
	for _, s := range All {
		v = append(v, string(s))
	}
	return v
}
