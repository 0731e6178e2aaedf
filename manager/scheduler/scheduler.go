// Package scheduler decides which waiting session starts where. It reads a
// snapshot, lets the pure planner decide, and commits what was decided in one
// fenced transaction; what waits gets its reasons. Only the leader runs it.
package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/store"
)

const (
	// passEvery is the period of the unconditional pass, for wakes that were
	// lost and for sessions whose retry time has come.
	passEvery = 2 * time.Second
	// maxPending bounds one pass; the rest of a longer queue waits for its turn.
	maxPending = 20_000
	// maxBatch bounds one transaction.
	maxBatch = 500
)

// Scheduler is the loop around the planner.
type Scheduler struct {
	client   *ent.Client
	bus      *event.Bus
	policies *policy.Service
	log      *slog.Logger
	past     *lately[[]plan.Usage]  // what holders took
	asked    *lately[[]plan.Demand] // what the latest sessions asked for
	roster   roster

	// Of the pass in progress.
	waiting  map[uuid.UUID]*ent.Session
	requests map[uuid.UUID]*plan.Request
}

// New returns a Scheduler.
func New(client *ent.Client, bus *event.Bus, policies *policy.Service, log *slog.Logger) *Scheduler {
	return &Scheduler{client: client, bus: bus, policies: policies, log: log, past: &lately[[]plan.Usage]{}, asked: &lately[[]plan.Demand]{}}
}

// Lead schedules until ctx ends.
func (s *Scheduler) Lead(ctx context.Context, epoch int64) {
	wakes := s.bus.Subscribe(ctx, event.Pending)
	tick := time.NewTicker(passEvery)
	defer tick.Stop()
	for {
		if err := s.pass(ctx, epoch); err != nil && ctx.Err() == nil {
			s.log.Error("schedule", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case _, ok := <-wakes:
			if !ok {
				return
			}
			drain(wakes)
		}
	}
}

// drain takes the wakes that came together, for one pass serves them all. The
// channel may be closed, at the end of the term.
func drain(wakes <-chan event.Event) {
	for {
		select {
		case _, open := <-wakes:
			if !open {
				return
			}
		default:
			return
		}
	}
}

// pass decides once over everything that waits.
func (s *Scheduler) pass(ctx context.Context, epoch int64) error {
	some, err := s.client.Session.Query().Where(entsession.StatusEQ(lifecycle.Pending)).Exist(ctx)
	if err != nil || !some {
		return err
	}
	snap, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	var placed, changed []plan.Decision
	for _, d := range plan.Plan(snap) {
		switch {
		case d.Placed():
			placed = append(placed, d)
		case s.news(d):
			changed = append(changed, d)
		}
	}
	for batch := range slices.Chunk(placed, maxBatch) {
		if err := s.commit(ctx, epoch, batch); err != nil {
			return fmt.Errorf("commit %d placements: %w", len(batch), err)
		}
	}
	for batch := range slices.Chunk(changed, maxBatch) {
		if err := s.explain(ctx, epoch, batch); err != nil {
			return fmt.Errorf("explain why %d sessions wait: %w", len(batch), err)
		}
	}
	return nil
}

// news tells whether a session waits for another reason than before.
func (s *Scheduler) news(d plan.Decision) bool {
	w := s.waiting[d.SessionID]
	if w.Pending == nil {
		return true
	}
	old, now := *w.Pending, *d.Waiting
	old.DecidedAt, now.DecidedAt = time.Time{}, time.Time{}
	return !reflect.DeepEqual(old, now)
}

// explain stores why sessions wait.
func (s *Scheduler) explain(ctx context.Context, epoch int64, batch []plan.Decision) error {
	waits := make([]session.Wait, len(batch))
	for i, d := range batch {
		waits[i] = session.Wait{Session: s.waiting[d.SessionID], Why: d.Waiting}
	}
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if err := session.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		return session.Explain(ctx, tx, waits)
	})
	if err != nil {
		return err
	}
	for _, d := range batch {
		s.bus.Publish(ctx, event.Event{Topic: event.Session, ID: d.SessionID})
	}
	return nil
}
