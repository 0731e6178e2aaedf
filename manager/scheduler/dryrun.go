package scheduler

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Trial is the cluster of a moment, in which requests are tried that nobody
// has made. It is read once and answers for any number of them.
type Trial struct{ snap *plan.Snapshot }

// Outcome tells what would become of a request: Never says why it cannot ever
// start, Waiting why it would not start at once. Without both it would.
type Outcome struct {
	Never   string
	Waiting string
}

// Trial reads the cluster. The pass in progress, if any, is not disturbed.
func (s *Scheduler) Trial(ctx context.Context) (*Trial, error) {
	apart := &Scheduler{client: s.client, policies: s.policies, log: s.log, past: s.past, asked: s.asked}
	snap, err := apart.snapshot(viewer.SystemContext(ctx))
	return &Trial{snap: snap}, err
}

// Run tries one request, as the last of today's queue, in the group among these
// that a session would get.
func (t *Trial) Run(r plan.Request, groups []uuid.UUID) Outcome {
	r.SessionID, r.Created = uuid.New(), t.snap.Now
	group, never := choose(t.snap, groups, r)
	if len(never) > 0 {
		return Outcome{Never: never[0].Reason}
	}
	r.Group = group
	bare := slices.Clone(t.snap.Limits)
	for i := range bare { // as though nobody used anything
		bare[i].Used, bare[i].Sessions = nil, 0
	}
	if reached := plan.NewLedger(bare).Reached(&r); len(reached) > 0 {
		return Outcome{Never: reached[0].String()}
	}
	with := *t.snap
	with.Pending = append(slices.Clone(t.snap.Pending), r)
	for _, d := range plan.Plan(&with) {
		if d.SessionID == r.SessionID && !d.Placed() {
			return Outcome{Waiting: d.Waiting.Summary}
		}
	}
	return Outcome{}
}
