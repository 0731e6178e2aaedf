package scheduler

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

const (
	// reasonBatch limits the sessions of one transaction, because their placement waits for it.
	reasonBatch = 200
	// renewShare is the pause after a batch that only updates numbers, in multiples of
	// the duration of the batch.
	renewShare = 10
	// renewEvery is the least time between two changes of one session's numbers.
	renewEvery = 5 * time.Second
)

// reasonWriter stores pending reasons asynchronously. A reason of another kind is
// stored at once; a change of numbers or of the position can take some seconds. The
// scheduler never reads the stored reasons for a decision.
type reasonWriter struct {
	*Scheduler
	epoch int64
	wake  chan struct{} // changed has new entries

	mu      sync.Mutex
	states  map[uuid.UUID]*reasonState
	changed []uuid.UUID // whose stored reason is of another kind
	stale   []uuid.UUID // whose stored reason has other numbers
}

// reasonState is the stored reason of a session and the one to store.
type reasonState struct {
	attempt  int
	was, now *report.Pending
	at       time.Time // when was was stored
	queued   bool      // in changed or stale
}

func newReasonWriter(s *Scheduler, epoch int64) *reasonWriter {
	return &reasonWriter{Scheduler: s, epoch: epoch, wake: make(chan struct{}, 1), states: map[uuid.UUID]*reasonState{}}
}

// offer takes the decisions of a pass. For a session that it has not seen before, the
// stored reason comes from the row.
func (t *reasonWriter) offer(decisions []plan.Decision, live map[uuid.UUID]*live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range decisions {
		w := t.states[d.SessionID]
		l := live[d.SessionID]
		if d.Placed() || l == nil {
			delete(t.states, d.SessionID)
			continue
		}
		if w == nil || w.attempt != l.attempt {
			w = &reasonState{attempt: l.attempt, was: l.reason}
			t.states[d.SessionID] = w
		}
		w.now = d.Waiting
		if w.queued {
			continue
		}
		switch {
		case w.was == nil || kindOf(w.was) != kindOf(w.now):
			t.changed = append(t.changed, d.SessionID)
			t.meter.refused.WithLabelValues(w.now.Stage).Inc()
		case !equal(w.was, w.now):
			t.stale = append(t.stale, d.SessionID)
		default:
			continue
		}
		w.queued = true
	}
	if len(t.changed) > 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// forget drops sessions that no longer wait.
func (t *reasonWriter) forget(ids []uuid.UUID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		delete(t.states, id)
	}
}

// kindOf is a reason without its numbers.
func kindOf(p *report.Pending) string {
	var b strings.Builder
	for _, l := range p.Limits {
		fmt.Fprint(&b, l.Scope, l.Holder, l.ResourceGroup, l.WithinProject, l.Policy, l.What, l.Limit, ";")
	}
	for _, d := range p.Dropped {
		fmt.Fprint(&b, d.Check, d.Slot, ";")
	}
	if b.Len() == 0 {
		return p.Summary
	}
	return b.String()
}

// equal reports whether two reasons differ in nothing but the time of the decision.
func equal(a, b *report.Pending) bool {
	x, y := *a, *b
	x.DecidedAt, y.DecidedAt = time.Time{}, time.Time{}
	return reflect.DeepEqual(x, y)
}

// run stores the offered reasons until ctx ends.
func (t *reasonWriter) run(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		batch, urgent := t.next()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-t.wake:
			case <-tick.C:
			}
			continue
		}
		begun := time.Now()
		if err := t.explain(ctx, batch); err != nil && ctx.Err() == nil {
			t.log.Error("store pending reasons", "sessions", len(batch), "error", err)
			urgent = false
		}
		if urgent {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-time.After(max(renewShare*time.Since(begun), 50*time.Millisecond)):
		}
	}
}

// next takes a batch: first the reasons of another kind, then those with other numbers.
func (t *reasonWriter) next() (batch []move.Wait, urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	urgent = len(t.changed) > 0
	from := &t.stale
	if urgent {
		from = &t.changed
	}
	for len(*from) > 0 && len(batch) < reasonBatch {
		id := (*from)[0]
		w := t.states[id]
		if w != nil && !urgent && time.Since(w.at) < renewEvery {
			break // the sessions behind it came later
		}
		*from = (*from)[1:]
		if w == nil || !w.queued {
			continue
		}
		w.queued = false
		batch = append(batch, move.Wait{Session: id, Attempt: w.attempt, Why: w.now, News: w.was == nil || kindOf(w.was) != kindOf(w.now)})
		w.was, w.at = w.now, time.Now()
	}
	return batch, urgent
}

// explain stores why sessions wait. If that fails, a later batch repeats it.
func (t *reasonWriter) explain(ctx context.Context, batch []move.Wait) error {
	err := store.InTx(ctx, t.client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, t.epoch); err != nil {
			return err
		}
		return move.Explain(ctx, tx, batch)
	})
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, w := range batch {
			if known := t.states[w.Session]; known != nil {
				known.was = nil
			}
		}
		return err
	}
	for _, w := range batch {
		t.bus.Publish(ctx, event.Event{Topic: event.Session, ID: w.Session, By: event.ByReasons})
	}
	return nil
}
