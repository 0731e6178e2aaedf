package starts

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/session/move"
)

// Reason is what a session waited for most of the time.
type Reason string

// The reasons. All but three are the stages of a waiting session.
const (
	None    Reason = "NONE"    // it was placed by the first pass that saw it
	Group   Reason = "GROUP"   // its resource group was deleted or not active
	Held    Reason = "HELD"    // a time or other sessions
	Limits  Reason = "LIMITS"  // a limit of a policy
	Room    Reason = "ROOM"    // no machine had enough free capacity
	Order   Reason = "ORDER"   // machines were reserved for sessions ahead of it
	Retry   Reason = "RETRY"   // attempts that failed
	Unknown Reason = "UNKNOWN" // recorded by an older version
)

// stages are the reasons of the stages of a waiting session.
var stages = map[string]Reason{
	report.StageGroup: Group, report.StageHeld: Held, report.StageLimits: Limits, report.StageRoom: Room, report.StageOrder: Order,
}

// The ways in which the image came to the machines.
const (
	Present = "PRESENT" // they had it
	Pulled  = "PULLED"
)

// Entry is a line of the history of a session.
type Entry struct {
	ID       uuid.UUID
	At       time.Time
	From, To lifecycle.Status
	Code     string
}

// Start is one start of a session.
type Start struct {
	Event                     uuid.UUID // about the start
	At                        time.Time
	Reason                    Reason
	Path                      string
	Wait, Queue, Pull, Create time.Duration // Wait is the sum of the others
}

// Derive returns the starts of a session. queued is when it came into the queue, or the earliest time of its start if that is later.
// entries are its history, the oldest first. A session that ran and starts again waits from its return to the queue.
func Derive(queued time.Time, entries []Entry) (out []Start) {
	a := &attempt{queued: queued}
	a.begin(queued)
	for _, e := range entries {
		if stage, ok := move.WaitStage(e.Code); ok {
			a.spend(e.At)
			a.reason = Unknown
			if r, known := stages[stage]; known {
				a.reason = r
			}
			continue
		}
		switch {
		case e.To == lifecycle.Scheduled:
			a.spend(e.At)
			a.scheduled, a.pullFrom, a.pullTo = e.At, time.Time{}, time.Time{}
			a.reason = Retry // until it runs or the attempt fails
		case e.To == lifecycle.Preparing:
			a.pullFrom = e.At
		case (e.To == lifecycle.Prepared || e.To == lifecycle.Creating) && a.pullTo.IsZero():
			a.pullTo = e.At
		case e.To == lifecycle.Running && e.From != lifecycle.Running:
			out = append(out, a.start(e))
			a.ran = true
		case e.To == lifecycle.Pending && e.From != lifecycle.Pending && a.ran:
			a = &attempt{queued: e.At}
			a.begin(e.At)
		case e.To == lifecycle.Pending && e.From != lifecycle.Pending:
			a.spend(e.At)
			a.reason = None
		}
	}
	return out
}

// attempt is the time of a session between its place in the queue and its run.
type attempt struct {
	queued           time.Time
	at               time.Time // until which spent is known
	reason           Reason    // since then
	spent            map[Reason]time.Duration
	scheduled        time.Time
	pullFrom, pullTo time.Time
	ran              bool
}

func (a *attempt) begin(at time.Time) {
	a.at, a.reason, a.spent = at, None, map[Reason]time.Duration{}
}

// spend adds the time until at to the current reason.
func (a *attempt) spend(at time.Time) {
	if d := at.Sub(a.at); d > 0 {
		a.spent[a.reason] += d
		a.at = at
	}
}

// start describes a start at the entry about it. A clock that was set back gives no negative time.
func (a *attempt) start(e Entry) Start {
	s := Start{Event: e.ID, At: e.At, Reason: None, Path: Present, Wait: max(0, e.At.Sub(a.queued))}
	created := a.scheduled
	if !a.pullFrom.IsZero() && !a.pullTo.IsZero() {
		s.Path, s.Pull = Pulled, min(s.Wait, max(0, a.pullTo.Sub(a.pullFrom)))
		created = a.pullTo
	}
	if !created.IsZero() {
		s.Create = min(s.Wait-s.Pull, max(0, e.At.Sub(created)))
	}
	s.Queue = s.Wait - s.Pull - s.Create
	var most time.Duration
	for _, r := range []Reason{Group, Held, Limits, Room, Order, Retry, Unknown} {
		if a.spent[r] > most {
			s.Reason, most = r, a.spent[r]
		}
	}
	return s
}
