package occupancy

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/google/uuid"
)

// Kind is a way in which the database and the agents differ.
type Kind string

// The kinds.
const (
	// Orphan lives on an agent, and nothing says that it should.
	Orphan Kind = "orphan"
	// Missing should run on an agent, which does not have it.
	Missing Kind = "missing"
	// Orphan is held by a session that is over or waits.
	Leaked Kind = "leaked"
	// Freed is held by a kernel that runs, and is free according to the database.
	Freed Kind = "freed"
	// Exceeded is a device of which more is held than it has, or at once what is never
	// held together.
	Exceeded Kind = "exceeded"
	// Gone is held of a device that its agent does not have any more.
	Gone Kind = "gone"
)

// Kinds lists all of them.
var Kinds = []Kind{Orphan, Missing, Leaked, Freed, Exceeded, Gone}

// Drift is one difference.
type Drift struct {
	Kind     Kind
	Agent    string // name
	Device   string // what its agent calls it; empty when it is not about one
	Kernel   *uuid.UUID
	Session  *uuid.UUID
	Detail   string
	Repaired bool
	// Owner and Project of what runs, by name where the database knows them and by id
	// where it does not; empty where nothing tells.
	Owner, Project string

	repair repair // nil when there is nothing safe to do
	// unknown is a orphan of which the database has never heard, as after it was restored
	// from a backup: an admin decides whether it ends.
	unknown bool
	waits   string // name of the session that the database knows of it, and that waits
}

// Next says what becomes of the difference when the cluster is not in recovery mode.
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
		return "is held again, if nobody else was given it"
	}
	return "stays"
}

// repair repairs a drift, in the term of a leader.
type repair func(ctx context.Context, epoch int64) error

// sight is what makes two drifts the same.
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

// MarshalGQL writes k as a GraphQL enum value.
func (k Kind) MarshalGQL(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(string(k))) }

// UnmarshalGQL refuses: no one asks by kind.
func (k *Kind) UnmarshalGQL(any) error { return errors.New("a kind of drift is only an answer") }
