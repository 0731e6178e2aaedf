package scheduler

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/store"
)

const (
	// repairEvery is the time between two repairs: a repair reads all rows again and
	// compares them with the model, for events that were lost. In a large cluster
	// the time is repairShare times the duration of a repair, at most repairMost.
	// While no event comes and nothing differs, the time doubles after each repair,
	// up to repairIdle.
	repairEvery = 2 * time.Second
	repairShare = 50
	repairMost  = 30 * time.Second
	repairIdle  = time.Minute
	// reviewEvery is the interval for deciding about every waiting session although no change could
	// let it start. It updates the numbers in the reasons, and the positions.
	reviewEvery = 2 * time.Second
	reviewShare = 100
	reviewMost  = 30 * time.Second
	// tickEvery is how often a leader checks whether a repair or a review is due.
	tickEvery = 500 * time.Millisecond
)

// by marks the events of the scheduler, which it need not receive itself.
const by = "scheduler"

// term is the time that one leader schedules.
type term struct {
	*Scheduler
	epoch   int64
	events  *event.Gathering
	model   *model
	planner plan.Planner
	reasons *reasonWriter

	sessions, agents map[uuid.UUID]bool // to be read again
	settings         bool               // are to be read again

	repaired, reviewed time.Time // when that is due
	repair             chan repaired
	repairing, lagged  bool               // lagged: events were lost while a repair reads
	pace               time.Duration      // between two repairs while events come
	quiet              int                // repairs since the last event or difference
	touched            map[uuid.UUID]bool // sessions and agents, while a repair reads
}

// repaired is the result of a repair's read, which runs concurrently with the passes.
type repaired struct {
	model *model
	took  time.Duration
	err   error
}

func (s *Scheduler) newTerm(ctx context.Context, epoch int64) *term {
	return &term{
		Scheduler: s, epoch: epoch, reasons: newReasonWriter(s, epoch), repair: make(chan repaired, 1),
		events:   s.bus.Gather(ctx, []event.Topic{event.Session, event.Agent, event.Pending, event.Policy}, by, event.BySamples, event.ByReasons),
		sessions: map[uuid.UUID]bool{}, agents: map[uuid.UUID]bool{},
	}
}

// run reads everything, and then decides whenever something has changed.
func (t *term) run(ctx context.Context) {
	tick := clock.NewTicker("scheduler", tickEvery)
	defer tick.Stop()
	defer func() {
		if t.repairing {
			<-t.repair
		}
	}()
	for {
		if err := t.pass(ctx); err != nil && ctx.Err() == nil {
			t.log.Error("schedule", "error", err)
			select { // an immediate retry would most likely fail again
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.events.Wake():
		case r := <-t.repair:
			t.repairing = false
			t.compare(ctx, r)
		case <-tick.C:
		}
	}
}

// pass decides once about the changes since the last pass.
func (t *term) pass(ctx context.Context) error {
	begun := time.Now()
	defer func() { t.meter.pass.Observe(time.Since(begun).Seconds()) }()
	if err := t.refresh(ctx); err != nil {
		return err
	}
	t.beginRepair(ctx)
	now := time.Now().UTC()
	change := t.model.take()
	change.Review = now.After(t.reviewed)
	t.model.snap.Now = now
	t.model.sums()
	decisions := t.planner.Decide(t.model.snap, change)
	if change.Review {
		t.reviewed = time.Now().Add(min(max(reviewEvery, reviewShare*time.Since(now)), reviewMost))
	}
	t.reasons.forget(change.Gone)
	var placed []plan.Decision
	for _, d := range decisions {
		if d.Placed() {
			placed = append(placed, d)
		}
	}
	for batch := range slices.Chunk(placed, maxBatch) {
		if err := t.commit(ctx, batch); err != nil {
			t.model.change.All, t.repaired = true, time.Time{}
			return fmt.Errorf("commit %d placements: %w", len(batch), err)
		}
	}
	if err := t.makeRoom(ctx, decisions); err != nil {
		t.model.change.All, t.repaired = true, time.Time{}
		return err
	}
	t.reasons.offer(decisions, t.model.live)
	t.reasons.offer(t.model.takeParked(), t.model.live)
	return nil
}

// refresh reads the rows that have changed since the last pass.
func (t *term) refresh(ctx context.Context) (err error) {
	changes := t.events.Take()
	if t.model == nil {
		t.model, err = t.read(ctx)
		return err
	}
	if changes.Lagged {
		t.repaired, t.lagged = time.Time{}, t.repairing
	}
	if changes.Lagged || len(changes.Changed) > 0 {
		t.busy()
	}
	t.dirty(t.sessions, changes.Changed[event.Session])
	t.dirty(t.agents, changes.Changed[event.Agent])
	for _, topic := range []event.Topic{event.Pending, event.Policy} {
		if _, ok := changes.Changed[topic]; ok {
			t.settings = true
		}
	}
	if t.settings {
		if err := t.rereadSettings(ctx); err != nil {
			return err
		}
		t.settings = false
	}
	if len(t.agents) > 0 {
		ids := store.IDs(t.agents)
		rows := &plan.Snapshot{}
		if err := t.readAgents(ctx, rows, ids...); err != nil {
			return fmt.Errorf("read agents: %w", err)
		}
		t.subtractOrphans(rows.Agents)
		t.model.putAgents(ids, rows.Agents)
		clear(t.agents)
	}
	if len(t.sessions) > 0 {
		ids := store.IDs(t.sessions)
		rows, err := t.readLive(ctx, ids, t.model.live)
		if err != nil {
			return fmt.Errorf("read sessions: %w", err)
		}
		for _, id := range ids {
			if rows[id] == nil {
				t.model.put(id, nil)
			}
		}
		t.model.putAll(rows)
		clear(t.sessions)
	}
	return nil
}

// busy makes the next repair due soon: an event can be lost only while rows change.
func (t *term) busy() {
	t.quiet = 0
	if soon := time.Now().Add(t.pace); t.repaired.After(soon) {
		t.repaired = soon
	}
}

func (t *term) dirty(set, ids map[uuid.UUID]bool) {
	maps.Copy(set, ids)
	if t.repairing {
		maps.Copy(t.touched, ids)
	}
}

// rereadSettings reads the settings and the limits.
func (t *term) rereadSettings(ctx context.Context) error {
	limits, err := t.policies.All(ctx, t.client)
	if err != nil {
		return err
	}
	settings := &plan.Snapshot{Now: time.Now().UTC(), Agents: t.model.snap.Agents}
	if err := t.readSettings(ctx, settings); err != nil {
		return err
	}
	t.adopt(settings, limits)
	return nil
}

func (t *term) adopt(m *plan.Snapshot, limits []policy.Limit) {
	if !reflect.DeepEqual(limits, t.model.limits) {
		t.model.setLimits(limits)
	}
	t.model.setSettings(m)
}

// beginRepair starts a repair's read, concurrently with the passes, if one is due.
func (t *term) beginRepair(ctx context.Context) {
	if t.repairing || time.Now().Before(t.repaired) {
		return
	}
	t.repairing, t.touched = true, map[uuid.UUID]bool{}
	go func() {
		begun := time.Now()
		m, err := t.read(ctx)
		t.repair <- repaired{m, time.Since(begun), err}
	}()
}

// rest returns the time until the next repair after quiet repairs without a change.
func rest(pace time.Duration, quiet int) time.Duration {
	for ; quiet > 0 && pace < repairIdle; quiet-- {
		pace *= 2
	}
	return min(pace, repairIdle)
}

// compare marks the rows that differ from the model, so that the next pass reads them. It
// leaves out rows that changed during the repair's read: the model is newer than the read.
func (t *term) compare(ctx context.Context, r repaired) {
	if t.pace = min(max(repairEvery, repairShare*r.took), repairMost); r.err != nil {
		t.quiet = 0
	}
	if t.repaired = time.Now().Add(rest(t.pace, t.quiet)); t.lagged {
		t.repaired, t.lagged = time.Time{}, false
	}
	if r.err != nil {
		if ctx.Err() == nil {
			t.log.Error("read the cluster for a repair", "error", r.err)
		}
		return
	}
	missed := 0
	mark := func(set map[uuid.UUID]bool, id uuid.UUID, differs bool) {
		if differs && !t.touched[id] {
			set[id] = true
			missed++
		}
	}
	for id, l := range r.model.live {
		known := t.model.live[id]
		mark(t.sessions, id, known == nil || !known.same(l) || l.status == lifecycle.Pending && !sameRequest(known.request, l.request))
	}
	for id := range t.model.live {
		mark(t.sessions, id, r.model.live[id] == nil)
	}
	for i := range r.model.snap.Agents {
		a := &r.model.snap.Agents[i]
		j, known := t.model.agents[a.ID]
		mark(t.agents, a.ID, !known || !sameAgent(a, &t.model.snap.Agents[j]))
	}
	for id := range t.model.agents {
		_, there := r.model.agents[id]
		mark(t.agents, id, !there)
	}
	t.adopt(r.model.snap, r.model.limits)
	t.quiet++
	if missed > 0 {
		t.busy()
		t.log.Debug("changes without an event", "count", missed)
	}
}
