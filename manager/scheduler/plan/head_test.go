package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestBackfillDelaysNoHead compares, over random clusters and queues with exact lifetimes, the
// start of the head with other requests behind it and without them.
func TestBackfillDelaysNoHead(t *testing.T) {
	n := uint64(2000)
	if testing.Short() {
		n = 300
	}
	for name, kind := range map[string]kind{"one kernel": single, "a gang": gang} {
		t.Run(name, func(t *testing.T) {
			compared, passed := 0, 0
			for seed := range n {
				alone, with := newQueueAt(t, seed, kind, false), newQueueAt(t, seed, kind, true)
				until := noon.Add(48 * time.Hour)
				a, _ := alone.untilHead(until, nil)
				w, estimate := with.untilHead(until, nil)
				if a.IsZero() || a.Equal(noon) {
					continue
				}
				compared++
				if len(with.started) > len(alone.started) {
					passed++
				}
				if w.IsZero() || w.After(a) {
					t.Fatalf("seed %d: the head starts at %s, and at %s without backfill", seed, w, a)
				}
				if !estimate.IsZero() && w.After(estimate) {
					t.Fatalf("seed %d: the head starts at %s, estimate %s", seed, w, estimate)
				}
			}
			t.Logf("%d heads compared, %d of them passed", compared, passed)
			if compared < int(n)/20 || passed < compared/4 {
				t.Errorf("%d of %d cases compared, passed in %d: the worlds are too simple", compared, n, passed)
			}
		})
	}
}

// TestNoHeadStarves ends sessions without a lifetime at random times, while other requests arrive
// all the time. A head that starts without these arrivals also starts with them.
func TestNoHeadStarves(t *testing.T) {
	n := uint64(300)
	if testing.Short() {
		n = 100
	}
	for name, kind := range map[string]kind{"one kernel": single, "a gang": gang} {
		t.Run(name, func(t *testing.T) {
			waited, without := 0, 0
			for seed := range n {
				until := noon.Add(96 * time.Hour)
				run := func(others bool, after time.Duration) time.Time {
					c := newQueueAt(t, seed, kind, others)
					c.Groups[0].HoldAfter = after
					w := newWorld(seed + n)
					c.unknown = func() time.Duration { return time.Duration(10+w.IntN(600)) * time.Minute }
					for _, x := range c.Running {
						if x.Ends.IsZero() {
							c.ends[x.SessionID] = noon.Add(c.unknown())
						}
					}
					at, _ := c.untilHead(until, func() {
						if !others {
							return
						}
						c.Pending = slices.DeleteFunc(c.Pending, func(r plan.Request) bool { return r.SessionID != idOf("head") })
						for range 8 { // sessions of others, whose time is over
							c.Pending = append(c.Pending, w.asked(c.Snapshot, w.id().String(), 50, 0))
						}
					})
					return at
				}
				a := run(false, time.Nanosecond)
				if a.IsZero() || a.Equal(noon) {
					continue
				}
				waited++
				if run(true, time.Nanosecond).IsZero() {
					t.Errorf("seed %d: the head never starts, and at %s without other sessions", seed, a)
				}
				if run(true, -1).IsZero() {
					without++
				}
			}
			t.Logf("%d heads waited; without a reservation %d of them starve", waited, without)
			if waited < int(n)/20 || without == 0 {
				t.Errorf("of %d heads %d waited, and %d would starve without a reservation: the worlds are too simple", n, waited, without)
			}
		})
	}
}

// untilHead lets time pass until the head starts. It returns the time of the start, and the
// earliest start that was foreseen.
func (c *clock) untilHead(until time.Time, arrive func()) (at, estimate time.Time) {
	for {
		if arrive != nil {
			arrive()
		}
		for _, d := range c.decide() {
			if d.SessionID != idOf("head") || d.Placed() || d.Waiting.EstimatedStart == nil {
				continue
			}
			if e := *d.Waiting.EstimatedStart; estimate.IsZero() || e.Before(estimate) {
				estimate = e
			}
		}
		if at = c.started[idOf("head")]; !at.IsZero() || !c.next(until) {
			return at, estimate
		}
	}
}

// kind is the kind of request at the head.
type kind int

const (
	single kind = iota
	gang        // of two to four kernels, in groups of all topologies
)

// newQueueAt returns a random cluster in use, and a head that waits. With others, more requests
// wait behind it.
func newQueueAt(t *testing.T, seed uint64, kind kind, others bool) *clock {
	w := newWorld(seed)
	s := &plan.Snapshot{Now: noon, SlotTypes: w.types(), Groups: []plan.Group{{ID: idOf("group"), Name: "default", HoldAfter: time.Nanosecond}}}
	for i := range 1 + w.IntN(4) {
		a := w.agent(s, i)
		a.Schedulable, a.Architecture, a.Volumes = true, "amd64", nil
		for j := range a.Devices {
			if w.chance(80) {
				a.Devices[j].Used = nil // the remaining sessions never end
			}
		}
		s.Agents = append(s.Agents, a)
	}
	if kind == gang {
		g := &s.Groups[0]
		g.Strategy = pick(w, plan.Strategies...)
		g.Topology = pick(w, plan.TopologyPrefer, plan.TopologyNode, plan.TopologyRoot, plan.TopologyLinked)
		g.Split = pick(w, plan.SplitFill, plan.SplitNone)
		for i := range s.Agents {
			w.lay(&s.Agents[i])
		}
	}
	c := newClock(t, s)
	for i := range 4 + w.IntN(12) {
		s.Pending = append(s.Pending, w.asked(s, fmt.Sprint("old", i), 85, 2*time.Hour))
	}
	c.decide()
	head := w.asked(s, "head", 0, time.Hour)
	if kind == gang {
		head.Kernels = w.crew()
	} else {
		head.Kernels = head.Kernels[:1]
		for _, name := range head.Kernels[0].Slots.Names() {
			head.Kernels[0].Slots[name] *= 1 + w.Int64N(4)
		}
	}
	s.Pending = []plan.Request{head}
	for i := range 15 {
		if r := w.asked(s, fmt.Sprint("new", i), 60, time.Minute); others {
			s.Pending = append(s.Pending, r)
		}
	}
	clear(c.started)
	return c
}

// asked adds a random request. A given percentage of such requests has a lifetime.
func (w *world) asked(s *plan.Snapshot, name string, known int, age time.Duration) plan.Request {
	r := w.request(s, 0, []uuid.UUID{idOf("user")}, idOf("project"), idOf("domain"))
	r.SessionID, r.Priority, r.Created, r.RetryAt = idOf(name), 0, s.Now.Add(-age), time.Time{}
	r.Architecture, r.Volumes, r.AvoidAgents = "", nil, nil
	for i := range r.Kernels {
		r.Kernels[i].ID = idOf(fmt.Sprintf("%s/%d", name, i))
	}
	if w.chance(known) {
		r.Lifetime = time.Duration(1+w.IntN(300)) * time.Minute
	}
	return r
}

// crew returns the kernels of a gang, equal or different.
func (w *world) crew() (kernels []plan.KernelRequest) {
	same := w.chance(30)
	for i := range 2 + w.IntN(3) {
		slots := w.slots()
		for _, name := range slots.Names() {
			slots[name] *= 1 + w.Int64N(2)
		}
		if same && i > 0 {
			slots = kernels[0].Slots
		}
		kernels = append(kernels, plan.KernelRequest{ID: idOf(fmt.Sprintf("head/%d", i)), Slots: slots})
	}
	return kernels
}
