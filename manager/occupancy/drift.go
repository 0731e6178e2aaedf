package occupancy

import (
	"context"

	"github.com/google/uuid"
)

// Kind is a way in which the database and the agents differ.
type Kind string

// The kinds.
const (
	// Orphan is a container on an agent that nothing in the database refers to.
	Orphan Kind = "orphan"
	// Missing is a kernel that should run on an agent, which does not have it.
	Missing Kind = "missing"
	// Leaked is an allocation of a session that has ended or is waiting.
	Leaked Kind = "leaked"
	// Freed is a device that a running kernel uses although it is free according to the
	// database.
	Freed Kind = "freed"
	// Exceeded is a device of which more is allocated than it has, or slots that exclude each
	// other.
	Exceeded Kind = "exceeded"
	// Gone is an allocation of a device that its agent no longer has.
	Gone Kind = "gone"
)

// Kinds lists all of them.
var Kinds = []Kind{Orphan, Missing, Leaked, Freed, Exceeded, Gone}

// Drift is one difference.
type Drift struct {
	Kind     Kind
	Agent    string // name
	Device   string // the agent's name for it; empty if the difference is not about a device
	Kernel   *uuid.UUID
	Session  *uuid.UUID
	Detail   string
	Repaired bool
	// Owner and Project of the session, by name if the database knows them and by id
	// otherwise; empty if unknown.
	Owner, Project string

	repair repair // nil if there is no safe repair
	// unknown is an orphan that the database has never known, as after a restore from a
	// backup: an administrator decides whether it ends.
	unknown bool
	waits   string // name of a waiting session that the container belongs to
}

// Next describes what happens to the difference when the cluster is not in recovery mode.
func (d *Drift) Next() string {
	switch {
	case d.waits != "":
		return "ends when the session " + d.waits + " starts again"
	case d.unknown:
		return "stays until an administrator ends it: berth admin occupancy --repair"
	case d.Kind == Orphan:
		return "ends"
	case d.Kind == Missing:
		return "the session ends as lost, or starts again where its group says so"
	case d.Kind == Leaked:
		return "becomes free"
	case d.Kind == Freed:
		return "is allocated again, unless another session has the device"
	}
	return "stays"
}

// repair repairs a drift, under the epoch of a leader.
type repair func(ctx context.Context, epoch int64) error

// sight is the key by which two drifts are equal.
type sight struct {
	kind          Kind
	agent, device string
	kernel        uuid.UUID
}

func (d *Drift) sight() sight {
	s := sight{kind: d.Kind, agent: d.Agent, device: d.Device}
	if d.Kernel != nil {
		s.kernel = *d.Kernel
	}
	return s
}
