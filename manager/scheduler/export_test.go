package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// Term runs the steps of a leader one by one.
type Term struct{ t *term }

// Begin begins to lead.
func (s *Scheduler) Begin(ctx context.Context, epoch int64) *Term {
	return &Term{s.newTerm(ctx, epoch)}
}

// Decide reads the changes and plans. It commits nothing.
func (t *Term) Decide(ctx context.Context) ([]plan.Decision, error) {
	if err := t.t.refresh(ctx); err != nil {
		return nil, err
	}
	change := t.t.model.take()
	change.Review = true
	return t.t.planner.Decide(t.t.model.snap, change), nil
}

// Commit is the commit of one batch, under an epoch.
func (t *Term) Commit(ctx context.Context, epoch int64, batch []plan.Decision) error {
	t.t.epoch = epoch
	return t.t.commit(ctx, batch)
}

// MakeRoom ends sessions to make room for others, under an epoch.
func (t *Term) MakeRoom(ctx context.Context, epoch int64, decisions []plan.Decision) error {
	t.t.epoch = epoch
	return t.t.makeRoom(ctx, decisions)
}

// Explain stores why sessions wait, under an epoch.
func (t *Term) Explain(ctx context.Context, epoch int64, batch []plan.Decision) error {
	t.t.reasons.epoch = epoch
	t.t.reasons.offer(batch, t.t.model.live)
	for {
		waits, _ := t.t.reasons.next()
		if len(waits) == 0 {
			return nil
		}
		if err := t.t.reasons.explain(ctx, waits); err != nil {
			return err
		}
	}
}

// Repair compares the model with the rows, as the scheduler does periodically.
func (t *Term) Repair(ctx context.Context) error {
	t.t.repaired, t.t.repairing = time.Time{}, false
	t.t.beginRepair(ctx)
	r := <-t.t.repair
	t.t.repairing = false
	t.t.compare(ctx, r)
	return r.err
}

// Differs returns the differences between the model and the rows.
func (t *Term) Differs(ctx context.Context) (string, error) {
	fresh, err := t.t.read(ctx)
	if err != nil {
		return "", err
	}
	return cmp.Diff(picture(fresh), picture(t.t.model)), nil
}

// picture is the content of a model, in a fixed order.
func picture(m *model) any {
	type limit struct {
		ID       uuid.UUID
		Total    resource.Slots
		Used     resource.Slots
		Sessions int
	}
	p := struct {
		Agents   map[uuid.UUID]plan.Agent
		Pending  map[uuid.UUID]plan.Request
		Running  map[uuid.UUID]plan.Running
		Holds    map[uuid.UUID]int
		Limits   []limit
		Settings plan.Snapshot
	}{map[uuid.UUID]plan.Agent{}, map[uuid.UUID]plan.Request{}, map[uuid.UUID]plan.Running{}, map[uuid.UUID]int{}, nil, *m.snap}
	p.Settings.Now, p.Settings.Agents, p.Settings.Pending, p.Settings.Limits, p.Settings.Running, p.Settings.Demand = time.Time{}, nil, nil, nil, nil, nil
	for _, a := range m.snap.Agents {
		a.LastUsed, a.Devices = time.Time{}, slices.Clone(a.Devices)
		slices.SortFunc(a.Devices, func(a, b plan.Device) int { return slices.Compare(a.ID[:], b.ID[:]) })
		p.Agents[a.ID] = a
	}
	for _, r := range m.snap.Pending {
		p.Pending[r.SessionID] = r
	}
	for _, r := range m.snap.Running {
		r.Ends = time.Time{} // the row is some milliseconds older than the model
		p.Running[r.SessionID] = r
	}
	for id, l := range m.live {
		p.Holds[id] = len(l.allocs)
	}
	for i := range m.snap.Limits {
		l := &m.snap.Limits[i]
		p.Limits = append(p.Limits, limit{l.ID, l.Total, maps.Clone(l.Used), l.Sessions})
	}
	return p
}
