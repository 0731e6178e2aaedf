package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/berthhq/berth/ent"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
)

// Advisor answers questions about the queues: the order and its reasons, the result of a
// request, and the changes that would let a session start at once. It plans on a snapshot
// that all callers share, and commits nothing.
type Advisor struct {
	scheduler *Scheduler
	client    *ent.Client
	sessions  Sessions

	turn  *semaphore.Weighted // acquired while rows are read; a waiting caller stops when its context ends
	last  *view
	begun time.Time // it was read
	until time.Time // it is recent enough
}

// Sessions checks requests like createSession.
type Sessions interface {
	Preview(context.Context, session.CreateSessionInput) (*session.Preview, []error, error)
	Groups(ctx context.Context, of *session.Preview) ([]uuid.UUID, error)
}

// NewAdvisor returns an Advisor.
func NewAdvisor(s *Scheduler, client *ent.Client, sessions Sessions) *Advisor {
	return &Advisor{scheduler: s, client: client, sessions: sessions, turn: semaphore.NewWeighted(1)}
}

const (
	// viewAge is the largest age of a view. It grows to viewCost times the duration of the
	// read, so that all callers together use at most a tenth of one core.
	viewAge  = time.Second
	viewCost = 10
)

// view is the decisions that a pass would make at a moment.
type view struct {
	snap   *plan.Snapshot // nil when nothing waits
	queues map[uuid.UUID][]*Place
	places map[uuid.UUID]*Place // by session
}

// Place is the place of a session in the queue of its group.
type Place struct {
	Session  uuid.UUID
	Position int // from 1
	Priority int
	Since    time.Time
	Pending  *report.Pending // nil when it starts at the next pass

	at []*Place // the queue
}

// Ahead lists the places before this one.
func (p *Place) Ahead() []*Place { return p.at[:p.Position-1] }

// view returns the shared view, and reads it again if it is too old. Concurrent callers
// wait for one read.
func (a *Advisor) view(ctx context.Context) (*view, error) {
	if err := a.turn.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for the queues: %w", err)
	}
	defer a.turn.Release(1)
	if a.last != nil && time.Now().Before(a.until) {
		return a.last, nil
	}
	begun := time.Now()
	v, err := a.read(viewer.SystemContext(ctx))
	if err != nil {
		return nil, err
	}
	a.last, a.begun, a.until = v, begun, time.Now().Add(max(viewAge, viewCost*time.Since(begun)))
	return v, nil
}

// Await waits until view returns a state that was read after the given time. It returns
// false if ctx ends first.
func (a *Advisor) Await(ctx context.Context, since time.Time) bool {
	if a.turn.Acquire(ctx, 1) != nil {
		return false
	}
	wait := time.Duration(0)
	if a.last != nil && !a.begun.After(since) {
		wait = time.Until(a.until)
	}
	a.turn.Release(1)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

func (a *Advisor) read(ctx context.Context) (*view, error) {
	v := &view{queues: map[uuid.UUID][]*Place{}, places: map[uuid.UUID]*Place{}}
	some, err := a.client.Session.Query().Where(entsession.TerminatedAtIsNil(), entsession.StatusEQ(lifecycle.Pending)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for pending sessions: %w", err)
	}
	if !some {
		return v, nil
	}
	trial, err := a.scheduler.Trial(ctx)
	if err != nil {
		return nil, err
	}
	v.snap = trial.snap
	v.fill(plan.Plan(v.snap))
	return v, nil
}

// fill builds the queues from decisions, in their order.
func (v *view) fill(decisions []plan.Decision) {
	requests := make(map[uuid.UUID]*plan.Request, len(v.snap.Pending))
	for i := range v.snap.Pending {
		requests[v.snap.Pending[i].SessionID] = &v.snap.Pending[i]
	}
	for i := range decisions {
		d := &decisions[i]
		r := requests[d.SessionID]
		p := &Place{Session: r.SessionID, Priority: r.Priority, Since: r.Created, Pending: d.Waiting}
		v.queues[r.Group] = append(v.queues[r.Group], p)
		p.Position = len(v.queues[r.Group])
		v.places[p.Session] = p
	}
	for _, queue := range v.queues {
		for _, p := range queue {
			p.at = queue
		}
	}
}

// Queue lists the waiting sessions of a group, in the order of the next pass.
func (a *Advisor) Queue(ctx context.Context, group uuid.UUID) ([]*Place, error) {
	v, err := a.view(ctx)
	if err != nil {
		return nil, err
	}
	return v.queues[group], nil
}

// Places returns the places of the given sessions that wait.
func (a *Advisor) Places(ctx context.Context, sessions []uuid.UUID) (map[uuid.UUID]*Place, error) {
	v, err := a.view(ctx)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID]*Place{}
	for _, id := range sessions {
		if p := v.places[id]; p != nil {
			out[id] = p
		}
	}
	return out, nil
}
