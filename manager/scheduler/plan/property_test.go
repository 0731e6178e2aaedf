package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// worlds runs f on many random snapshots; the name of a failure is its seed.
func worlds(t *testing.T, f func(t *testing.T, w *world, s *plan.Snapshot)) {
	n := uint64(3000)
	if testing.Short() {
		n = 500
	}
	for seed := range n {
		w := newWorld(seed)
		s := w.snapshot()
		if !t.Run("", func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			f(t, w, s)
		}) {
			return
		}
	}
}

func TestPlacementsKeepTheRules(t *testing.T) {
	placed, waiting := 0, 0
	worlds(t, func(t *testing.T, _ *world, s *plan.Snapshot) {
		decisions := plan.Plan(s)
		replay(t, s, decisions)
		for i := range decisions {
			if decisions[i].Placed() {
				placed++
			} else {
				waiting++
			}
		}
	})
	if placed < 1000 && !testing.Short() || waiting < 100 {
		t.Errorf("%d placed, %d waiting: the worlds are too simple", placed, waiting)
	}
}

// TestNobodyWaitsForNothing tries all possible places for every request that waits for capacity.
// What fits after the plan would also have fitted before.
func TestNobodyWaitsForNothing(t *testing.T) {
	looked := 0
	worlds(t, func(t *testing.T, _ *world, s *plan.Snapshot) {
		decisions := plan.Plan(s)
		m := replay(t, s, decisions)
		for i, d := range decisions {
			r := find(s, d.SessionID)
			if d.Placed() || len(r.Kernels) != 1 || len(d.Waiting.Limits) > 0 || r.RetryAt.After(s.Now) || dropped(d.Waiting, "reserved") > 0 {
				continue
			}
			looked++
			for j := range s.Agents {
				a := &s.Agents[j]
				// A reservation may have come after an equal request was considered.
				if m.suits(a, r) == nil && m.room(a, r.Kernels[0]) && !anyReserved(decisions[:i], s, r.Group) {
					t.Fatalf("waits for %v though agent %s has room: %+v", r.Kernels[0].Slots, a.Name, d.Waiting)
				}
			}
		}
	})
	if looked == 0 {
		t.Error("nothing waited")
	}
}

func TestReasonsAreComplete(t *testing.T) {
	worlds(t, func(t *testing.T, _ *world, s *plan.Snapshot) {
		position := map[uuid.UUID]int{}
		agents := map[uuid.UUID]int{}
		for _, a := range s.Agents {
			agents[a.Group]++
		}
		var last *plan.Request
		for _, d := range plan.Plan(s) {
			r := find(s, d.SessionID)
			if last != nil && (r.Priority > last.Priority || r.Priority == last.Priority && r.Created.Before(last.Created)) {
				t.Fatal("decisions are out of order")
			}
			last = r
			if d.Placed() {
				continue
			}
			w := d.Waiting
			position[r.Group]++
			if w.Position != position[r.Group] || !w.DecidedAt.Equal(s.Now) || w.Agents != agents[r.Group] || w.Summary == "" {
				t.Errorf("report %+v, want position %d and %d agents", w, position[r.Group], agents[r.Group])
			}
			if len(w.Limits) > 0 || r.RetryAt.After(s.Now) {
				continue
			}
			sum := 0
			for _, d := range w.Dropped {
				if d.Count <= 0 || d.Check == "" {
					t.Errorf("odd check %+v", d)
				}
				sum += d.Count
			}
			if sum != w.Agents {
				t.Errorf("%d of %d agents dropped: %+v", sum, w.Agents, w.Dropped)
			}
			lacking := sum - dropped(w, "cordoned") - dropped(w, "architecture") -
				dropped(w, "volume_missing") - dropped(w, "slot_missing") - dropped(w, "slot_counts") - dropped(w, "reserved")
			if (w.Nearest != nil) != (lacking > 0) {
				t.Errorf("nearest fit %+v with %+v", w.Nearest, w.Dropped)
			}
			if w.Nearest != nil && (w.Nearest.Agent == "" || w.Nearest.Slot == "" || w.Nearest.Requested == "0") {
				t.Errorf("odd nearest fit %+v", w.Nearest)
			}
		}
	})
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	worlds(t, func(t *testing.T, w *world, s *plan.Snapshot) {
		want := plan.Plan(s)
		if diff := cmp.Diff(want, plan.Plan(s)); diff != "" {
			t.Fatalf("a second look: %s", diff)
		}
		w.Shuffle(len(s.Agents), func(i, j int) { s.Agents[i], s.Agents[j] = s.Agents[j], s.Agents[i] })
		w.Shuffle(len(s.Pending), func(i, j int) { s.Pending[i], s.Pending[j] = s.Pending[j], s.Pending[i] })
		if diff := cmp.Diff(want, plan.Plan(s)); diff != "" {
			t.Fatalf("shuffled: %s", diff)
		}
	})
}

// TestImpossibleIsNeverPlaced compares CanEver with Plan and with the model.
func TestImpossibleIsNeverPlaced(t *testing.T) {
	worlds(t, func(t *testing.T, _ *world, s *plan.Snapshot) {
		idle := *s
		idle.Agents = nil
		for _, a := range s.Agents {
			a.Schedulable = true
			a.Devices = append([]plan.Device{}, a.Devices...)
			for i := range a.Devices {
				a.Devices[i].Healthy, a.Devices[i].Used = true, nil
			}
			idle.Agents = append(idle.Agents, a)
		}
		refused := map[uuid.UUID]bool{}
		for i := range s.Pending {
			r := &s.Pending[i]
			list := plan.CanEver(s, r)
			refused[r.SessionID] = len(list) > 0
			for _, x := range list {
				if x.Field == "" || x.Requested == "" || x.Reason == "" {
					t.Errorf("incomplete answer %+v", x)
				}
			}
			if len(r.Kernels) != 1 {
				continue
			}
			m, possible, agents := newModel(&idle), false, 0
			for j := range idle.Agents {
				a := &idle.Agents[j]
				if a.Group == r.Group {
					agents++
				}
				possible = possible || m.suits(a, r) == nil && m.room(a, r.Kernels[0])
			}
			if agents > 0 && possible == refused[r.SessionID] {
				t.Errorf("%v possible: %v, answer %+v", r.Kernels[0].Slots, possible, list)
			}
		}
		for _, d := range plan.Plan(s) {
			if d.Placed() && refused[d.SessionID] {
				t.Errorf("an impossible request was placed: %+v", d)
			}
		}
	})
}

func find(s *plan.Snapshot, session uuid.UUID) *plan.Request {
	for i := range s.Pending {
		if s.Pending[i].SessionID == session {
			return &s.Pending[i]
		}
	}
	return nil
}

func dropped(p *report.Pending, check string) int {
	n := 0
	for _, d := range p.Dropped {
		if d.Check == check {
			n += d.Count
		}
	}
	return n
}

// anyReserved reports whether one of the decisions may have reserved agents.
func anyReserved(decisions []plan.Decision, s *plan.Snapshot, group uuid.UUID) bool {
	for _, g := range s.Groups {
		if g.ID == group && g.HoldAfter < 0 {
			return false
		}
	}
	for _, d := range decisions {
		if !d.Placed() && find(s, d.SessionID).Group == group {
			return true
		}
	}
	return false
}
