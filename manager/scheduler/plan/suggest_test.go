package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// halves returns three agents with eight devices each, of which a half is in use.
func halves() *plan.Snapshot {
	s := &plan.Snapshot{Now: noon, Groups: []plan.Group{{ID: uuid.New(), Name: "default"}}}
	for i := range 3 {
		a := plan.Agent{ID: uuid.New(), Name: fmt.Sprint("agent", i), Group: s.Groups[0].ID, Schedulable: true}
		a.Devices = append(a.Devices, device(resource.Slots{"cpu": 32000}, nil), device(resource.Slots{"mem": 64 << 30}, nil))
		for range 8 {
			a.Devices = append(a.Devices, device(resource.Slots{"cuda.shares": 1000}, resource.Slots{"cuda.shares": 500}))
		}
		s.Agents = append(s.Agents, a)
	}
	return s
}

func device(capacity, used resource.Slots) plan.Device {
	return plan.Device{ID: uuid.New(), Allocatable: true, Healthy: true, Capacity: capacity, Used: used}
}

// ask adds a request and returns its session.
func ask(s *plan.Snapshot, slots resource.Slots, change ...func(*plan.Request)) uuid.UUID {
	r := plan.Request{SessionID: uuid.New(), Group: s.Groups[0].ID, Created: s.Now.Add(-time.Second), Kernels: []plan.KernelRequest{{ID: uuid.New(), Slots: slots}}}
	for _, c := range change {
		c(&r)
	}
	s.Pending = append(s.Pending, r)
	return r.SessionID
}

func TestSuggestions(t *testing.T) {
	one := resource.Slots{"cpu": 1000, "mem": 1 << 30, "cuda.shares": 1000}
	with := func(name string, amount int64) resource.Slots {
		s := one.Clone()
		s[name] = amount
		return s
	}
	for _, c := range []struct {
		name   string
		change func(s *plan.Snapshot, r *plan.Request, alt *plan.Alternatives) []plan.Suggestion
	}{
		{"half of a device where each has half", func(*plan.Snapshot, *plan.Request, *plan.Alternatives) []plan.Suggestion {
			return []plan.Suggestion{{Slots: with("cuda.shares", 500)}}
		}},
		{"the largest that any device has", func(s *plan.Snapshot, _ *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			s.Agents[2].Devices[5].Used = resource.Slots{"cuda.shares": 250}
			return []plan.Suggestion{{Slots: with("cuda.shares", 750)}}
		}},
		{"fewer cores", func(_ *plan.Snapshot, r *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			r.Kernels[0].Slots = resource.Slots{"cpu": 40000, "mem": 1 << 30}
			return []plan.Suggestion{{Slots: resource.Slots{"cpu": 32000, "mem": 1 << 30}}}
		}},
		{"no fewer cores than its image needs", func(_ *plan.Snapshot, r *plan.Request, alt *plan.Alternatives) []plan.Suggestion {
			r.Kernels[0].Slots = resource.Slots{"cpu": 40000, "mem": 1 << 30}
			alt.Least = resource.Slots{"cpu": 33000}
			return nil
		}},
		{"less of two slots", func(_ *plan.Snapshot, r *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			r.Kernels[0].Slots = resource.Slots{"cpu": 40000, "mem": 128 << 30}
			return []plan.Suggestion{{Slots: resource.Slots{"cpu": 32000, "mem": 64 << 30}}}
		}},
		{"less within a limit", func(s *plan.Snapshot, r *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			r.Kernels[0].Slots = resource.Slots{"cpu": 8000}
			s.Limits = []plan.Limit{{Scope: plan.ScopeUser, ID: r.Owner, Total: resource.Slots{"cpu": 10000}, Used: resource.Slots{"cpu": 5000}}}
			return []plan.Suggestion{{Slots: resource.Slots{"cpu": 5000}}}
		}},
		{"another group that has room, of those that may be named", func(s *plan.Snapshot, _ *plan.Request, alt *plan.Alternatives) []plan.Suggestion {
			full, free, hidden := uuid.New(), uuid.New(), uuid.New()
			for _, g := range []uuid.UUID{full, free, hidden} {
				s.Groups = append(s.Groups, plan.Group{ID: g})
				a := s.Agents[0]
				a.ID, a.Name, a.Group, a.Devices = uuid.New(), g.String(), g, slices.Clone(a.Devices)
				if g != full {
					a.Devices[2].Used = nil
				}
				s.Agents = append(s.Agents, a)
			}
			alt.Groups = []uuid.UUID{s.Groups[0].ID, full, free}
			return []plan.Suggestion{{Slots: with("cuda.shares", 500)}, {Group: free}}
		}},
		{"agents other than the requested ones", func(s *plan.Snapshot, r *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			s.Agents[1].Devices[4].Used = nil
			r.Agents, r.Strict = []uuid.UUID{s.Agents[0].ID}, true
			return []plan.Suggestion{{AnyAgent: true}, {Slots: with("cuda.shares", 500)}}
		}},
		{"the end of the session that holds least, of those whose end makes room", func(s *plan.Snapshot, _ *plan.Request, alt *plan.Alternatives) []plan.Suggestion {
			holds := func(devices ...int) plan.Running {
				x := plan.Running{SessionID: uuid.New(), Group: s.Groups[0].ID}
				for _, d := range devices {
					x.Holds = append(x.Holds, plan.Alloc{DeviceID: s.Agents[0].Devices[d].ID, Slot: "cuda.shares", Amount: 500})
				}
				return x
			}
			cpu := plan.Running{SessionID: uuid.New(), Group: s.Groups[0].ID}
			alt.Running = []plan.Running{cpu, holds(2, 3), holds(4)}
			return []plan.Suggestion{{Slots: with("cuda.shares", 500)}, {End: alt.Running[2].SessionID}}
		}},
		{"nothing for a session with a start time", func(s *plan.Snapshot, r *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			r.StartsAt = s.Now.Add(time.Hour)
			return nil
		}},
		{"nothing for a session that starts", func(s *plan.Snapshot, _ *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			s.Agents[1].Devices[4].Used = nil
			return nil
		}},
		{"nothing that earlier sessions need", func(s *plan.Snapshot, r *plan.Request, _ *plan.Alternatives) []plan.Suggestion {
			for i := range s.Agents {
				for j := 2; j < len(s.Agents[i].Devices); j++ {
					s.Agents[i].Devices[j].Used = resource.Slots{"cuda.shares": 1000}
				}
			}
			s.Agents[0].Devices[2].Used = resource.Slots{"cuda.shares": 600}
			first := *r
			first.SessionID, first.Priority = uuid.New(), 5
			first.Kernels = []plan.KernelRequest{{ID: uuid.New(), Slots: with("cuda.shares", 400)}}
			s.Pending = append(s.Pending, first)
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := halves()
			id := ask(s, one)
			alt := plan.Alternatives{}
			want := c.change(s, &s.Pending[0], &alt)
			got := plan.Suggest(s, id, alt)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("suggested %v, want %v", got, want)
			}
		})
	}
}

// In clusters of all kinds, a suggestion that is followed lets the session start. A suggestion
// names no group and no session other than the given alternatives.
func TestEverySuggestionStarts(t *testing.T) {
	counts, waiting := map[string]int{}, 0
	for seed := range uint64(800) {
		w := newWorld(seed)
		s := w.snapshot()
		for i := range s.Groups {
			s.Groups[i].Order = pick(w, plan.OrderFIFO, plan.OrderFIFO, plan.OrderLIFO, plan.OrderDRF)
		}
		var alt plan.Alternatives
		for _, g := range s.Groups {
			if w.chance(80) {
				alt.Groups = append(alt.Groups, g.ID)
			}
		}
		alt.Running = w.running(s)
		for _, d := range plan.Plan(s) {
			if d.Placed() {
				continue
			}
			waiting++
			for _, x := range plan.Suggest(s, d.SessionID, alt) {
				after := plan.With(s, d.SessionID, x)
				kind := "slots"
				switch {
				case x.Group != uuid.Nil:
					kind = "group"
					if !slices.Contains(alt.Groups, x.Group) {
						t.Fatalf("seed %d: a group that was not given", seed)
					}
				case x.AnyAgent:
					kind = "any agent"
				case x.End != uuid.Nil:
					kind = "end"
					i := slices.IndexFunc(alt.Running, func(r plan.Running) bool { return r.SessionID == x.End })
					if i < 0 {
						t.Fatalf("seed %d: a session that was not given", seed)
					}
					after = plan.Without(s, &alt.Running[i])
				}
				counts[kind]++
				if !starts(after, d.SessionID) {
					t.Fatalf("seed %d: %v of %s does not start: %s", seed, x, d.SessionID, d.Waiting.Summary)
				}
			}
		}
	}
	t.Logf("%d waiting sessions, suggestions %v", waiting, counts)
	for _, kind := range []string{"slots", "group", "any agent", "end"} {
		if counts[kind] < 20 {
			t.Errorf("only %d suggestions of kind %s: does the world make any?", counts[kind], kind)
		}
	}
}

// starts plans for all waiting sessions, and reports whether the session starts.
func starts(s *plan.Snapshot, session uuid.UUID) bool {
	return slices.ContainsFunc(plan.Plan(s), func(d plan.Decision) bool { return d.SessionID == session && d.Placed() })
}

// running divides the used amounts among sessions, and restricts some requests to agents.
func (w *world) running(s *plan.Snapshot) (list []plan.Running) {
	for i := range s.Agents {
		a := &s.Agents[i]
		for range 2 {
			list = append(list, plan.Running{SessionID: w.id(), Group: a.Group, Slots: resource.Slots{}})
		}
		for _, d := range a.Devices {
			for slot, amount := range d.Used {
				x := &list[len(list)-1-w.IntN(2)]
				x.Holds = append(x.Holds, plan.Alloc{DeviceID: d.ID, Slot: slot, Amount: amount})
				x.Slots[slot] += amount
			}
		}
	}
	for i := range s.Pending {
		if r := &s.Pending[i]; w.chance(20) && len(s.Agents) > 0 {
			r.Agents, r.Strict = []uuid.UUID{pick(w, s.Agents...).ID}, true
		}
	}
	return list
}

func TestStages(t *testing.T) {
	one := resource.Slots{"cpu": 1000, "cuda.shares": 1000}
	for _, c := range []struct {
		want   string
		change func(s *plan.Snapshot, r *plan.Request)
	}{
		{report.StageRoom, func(*plan.Snapshot, *plan.Request) {}},
		{report.StageGroup, func(_ *plan.Snapshot, r *plan.Request) { r.Group = uuid.New() }},
		{report.StageHeld, func(s *plan.Snapshot, r *plan.Request) { r.StartsAt = s.Now.Add(time.Minute) }},
		{report.StageHeld, func(_ *plan.Snapshot, r *plan.Request) { r.After = []string{"first"} }},
		{report.StageLimits, func(s *plan.Snapshot, r *plan.Request) {
			s.Limits = []plan.Limit{{Scope: plan.ScopeUser, ID: r.Owner, UnlistedZero: true}}
		}},
	} {
		s := halves()
		id := ask(s, one)
		c.change(s, &s.Pending[0])
		d := plan.Plan(s)[0]
		if d.SessionID != id || d.Waiting == nil || d.Waiting.Stage != c.want {
			t.Errorf("%+v, want the stage %s", d.Waiting, c.want)
		} else if d.Waiting.Until != nil != !s.Pending[0].StartsAt.IsZero() {
			t.Errorf("waits until %v, starts at %v", d.Waiting.Until, s.Pending[0].StartsAt)
		}
	}
}

// Agents are reserved for the head of a queue that has waited long enough. A request that would fit
// on these agents waits for its turn.
func TestWhoIsHeldFor(t *testing.T) {
	s := newSite()
	s.agent("a", nil, nil)
	s.runs("old", "a/0", "cuda.device", 1)
	s.ask("head", time.Hour, resource.Slots{"cuda.device": 2, "cpu": 4000})
	s.ask("later", 0, resource.Slots{"cuda.device": 1})
	got := s.decide(t)
	if w := got["head"].Waiting; w.Holds != 1 || w.Stage != report.StageRoom {
		t.Errorf("the first: %+v", w)
	}
	if w := got["later"].Waiting; w.Holds != 0 || w.Stage != report.StageOrder {
		t.Errorf("the second: %+v", w)
	}
}
