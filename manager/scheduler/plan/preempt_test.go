package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// evicting returns a site whose group preempts sessions.
func evicting(scope string) *site {
	s := newSite()
	s.Groups[0].Preemption = &plan.Preemption{Scope: scope, After: 5 * time.Minute}
	return s
}

// victim adds a preemptible session that uses n devices from the first one on.
func (s *site) victim(name, agent string, first, n int, ran time.Duration) *plan.Running {
	x := s.runs(name, fmt.Sprintf("%s/%d", agent, first), "cuda.device", 1)
	for i := 1; i < n; i++ {
		more := s.runs("", fmt.Sprintf("%s/%d", agent, first+i), "cuda.device", 1)
		hold := more.Holds[0]
		s.Running = s.Running[:len(s.Running)-1]
		x = &s.Running[len(s.Running)-1]
		x.Holds = append(x.Holds, hold)
	}
	x.Preemptible, x.Since = true, noon.Add(-ran)
	return x
}

func named(list []uuid.UUID) string {
	var names []string
	for _, id := range list {
		names = append(names, nameOf(id))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestWhoMakesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		scope  string
		change func(r *plan.Request, x *plan.Running)
		makes  bool
	}{
		"a session of the same user":       {plan.ScopeUser, func(*plan.Request, *plan.Running) {}, true},
		"not one of another user":          {plan.ScopeUser, func(_ *plan.Request, x *plan.Running) { x.Owner = idOf("other") }, false},
		"one of the same project":          {plan.ScopeProject, func(_ *plan.Request, x *plan.Running) { x.Owner = idOf("other") }, true},
		"not one of another project":       {plan.ScopeProject, func(_ *plan.Request, x *plan.Running) { x.Project = idOf("other") }, false},
		"one of the same domain":           {plan.ScopeDomain, func(_ *plan.Request, x *plan.Running) { x.Project = idOf("other") }, true},
		"not one of another domain":        {plan.ScopeDomain, func(_ *plan.Request, x *plan.Running) { x.Domain = idOf("other") }, false},
		"anyone's in the group":            {plan.ScopeGroup, func(_ *plan.Request, x *plan.Running) { x.Domain = idOf("other") }, true},
		"not one of the same priority":     {plan.ScopeGroup, func(r *plan.Request, _ *plan.Running) { r.Priority = 0 }, false},
		"not one that is not preemptible":  {plan.ScopeGroup, func(_ *plan.Request, x *plan.Running) { x.Preemptible = false }, false},
		"not one that has just begun":      {plan.ScopeGroup, func(_ *plan.Request, x *plan.Running) { x.Since = noon.Add(-4 * time.Minute) }, false},
		"not one that does not run yet":    {plan.ScopeGroup, func(_ *plan.Request, x *plan.Running) { x.Since = time.Time{} }, false},
		"not when that is not enough":      {plan.ScopeGroup, func(r *plan.Request, _ *plan.Running) { r.Kernels[0].Slots["cuda.device"] = 2 }, false},
		"not when a limit is in the way":   {plan.ScopeGroup, func(r *plan.Request, _ *plan.Running) { r.Kernels[0].Slots["mem"] = 33 }, false},
		"not when it starts only tomorrow": {plan.ScopeGroup, func(r *plan.Request, _ *plan.Running) { r.StartsAt = noon.Add(24 * time.Hour) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := evicting(c.scope)
			s.agent("a", nil)
			s.Limits = []plan.Limit{{Scope: plan.ScopeUser, ID: idOf("user"), Total: resource.Slots{"mem": 32}}}
			x := s.victim("old", "a", 0, 1, time.Hour)
			r := s.ask("new", 0, resource.Slots{"cuda.device": 1})
			r.Priority = 1
			c.change(r, x)
			d := s.decide(t)["new"]
			if d.Placed() {
				t.Fatal("it is placed on used devices")
			}
			if got := named(d.Victims); (got == "old") != c.makes || (got == "") == c.makes {
				t.Errorf("ends %q: %v, %s", got, c.makes, d.Waiting.Summary)
			}
			if room := d.Waiting.Room; (room != nil) != c.makes || c.makes && (len(room.Sessions) != 1 || len(room.Parts) != 1) {
				t.Errorf("room %+v", room)
			}
		})
	}
}

func TestPreemptionIsOffByDefault(t *testing.T) {
	s := newSite()
	s.agent("a", nil)
	s.victim("old", "a", 0, 1, time.Hour)
	s.ask("new", 0, resource.Slots{"cuda.device": 1}).Priority = 1
	if d := s.decide(t)["new"]; len(d.Victims) > 0 {
		t.Errorf("it ends %s", named(d.Victims))
	}
}

func TestFewestAndYoungestMakeRoom(t *testing.T) {
	for name, c := range map[string]struct {
		build func(s *site)
		slots resource.Slots
		want  string
	}{
		"the one that ran least": {func(s *site) {
			s.agent("a", nil, nil)
			s.victim("long", "a", 0, 1, 2*time.Hour)
			s.victim("short", "a", 1, 1, time.Hour)
		}, resource.Slots{"cuda.device": 1}, "short"},
		"one rather than two that ran less": {func(s *site) {
			s.agent("a", nil, nil, nil, nil)
			s.victim("one", "a", 0, 1, 10*time.Minute)
			s.victim("two", "a", 1, 1, 10*time.Minute)
			s.victim("big", "a", 2, 2, 9*time.Hour)
		}, resource.Slots{"cuda.device": 2}, "big"},
		"two rather than four that ran less": {func(s *site) {
			s.agent("a", nil, nil, nil, nil, nil, nil, nil, nil)
			for i := range 4 {
				s.victim(fmt.Sprint("small", i), "a", i, 1, 10*time.Minute)
			}
			s.victim("big0", "a", 4, 2, 9*time.Hour)
			s.victim("big1", "a", 6, 2, 9*time.Hour)
		}, resource.Slots{"cuda.device": 4}, "big0 big1"},
		"the agent where fewer end": {func(s *site) {
			s.agent("a", nil, nil)
			s.agent("b", nil, nil)
			s.victim("a0", "a", 0, 1, 10*time.Minute)
			s.victim("a1", "a", 1, 1, 10*time.Minute)
			s.victim("b0", "b", 0, 1, 10*time.Hour)
		}, resource.Slots{"cuda.device": 2}, "b0"},
		"no session, when another one ends anyway": {func(s *site) {
			s.agent("a", nil)
			s.agent("b", nil)
			s.victim("a0", "a", 0, 1, 10*time.Minute)
			s.victim("b0", "b", 0, 1, 10*time.Minute).Leaving = true
		}, resource.Slots{"cuda.device": 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := evicting(plan.ScopeUser)
			c.build(s)
			s.ask("new", 0, c.slots).Priority = 1
			d := s.decide(t)["new"]
			if got := named(d.Victims); got != c.want {
				t.Errorf("ends %q, want %q", got, c.want)
			}
			if d.Waiting == nil || d.Waiting.Room == nil {
				t.Errorf("no session is preempted: %+v", d)
			}
		})
	}
}

// TestRoomIsPromised has another request, which is before the first in the queue and may not
// preempt, wait for the same devices. The devices become free in two steps.
func TestRoomIsPromised(t *testing.T) {
	s := evicting(plan.ScopeProject)
	s.Groups[0].HoldAfter = -1
	s.agent("a", nil, nil)
	s.victim("one", "a", 0, 1, time.Hour)
	s.victim("two", "a", 1, 1, time.Hour)
	older := s.ask("older", time.Hour, resource.Slots{"cuda.device": 1})
	older.Priority, older.Project = 1, idOf("other")
	s.ask("new", 0, resource.Slots{"cuda.device": 2}).Priority = 1
	c := newClock(t, &s.Snapshot)
	for pass := range 4 {
		by := map[string]plan.Decision{}
		for _, d := range c.decide() {
			by[nameOf(d.SessionID)] = d
		}
		if d := by["older"]; d.Placed() || len(d.Victims) > 0 {
			t.Errorf("pass %d: the older one gets the room: %+v", pass, d)
		}
		d, waits := by["new"], pass < 3
		if d.Placed() == waits || waits && d.Waiting.Room == nil {
			t.Errorf("pass %d: %+v", pass, d)
		}
		if got, want := named(d.Victims), map[bool]string{true: "one two"}[pass == 0]; got != want {
			t.Errorf("pass %d ends %q, want %q", pass, got, want)
		}
		switch pass {
		case 0:
			c.ends[idOf("one")] = c.Now.Add(time.Second)
		case 1: // one of the victims has ended
			c.next(c.Now.Add(time.Second))
		case 2: // and the other victim
			c.next(noon.Add(c.grace))
			c.next(noon.Add(c.grace))
		}
	}
}

// TestPreemptionKeepsItsWord lets time pass in random clusters, and checks that each request that
// preempts sessions starts as planned.
func TestPreemptionKeepsItsWord(t *testing.T) {
	n := uint64(1000)
	if testing.Short() {
		n = 300
	}
	made := 0
	for seed := range n {
		c := newQueueAt(t, seed, single, true)
		c.Groups[0].Preemption = &plan.Preemption{Scope: plan.ScopeGroup}
		c.Groups[0].HoldAfter = time.Hour // no reservations by age
		w := newWorld(seed)
		for i := range c.Running {
			c.Running[i].Preemptible = w.chance(70)
		}
		for i := range c.Pending {
			c.Pending[i].Priority = w.IntN(3)
		}
		due := map[uuid.UUID]time.Time{}
		var passes int
		for until := noon.Add(10 * time.Minute); ; passes++ {
			twice := map[uuid.UUID]bool{}
			for _, d := range c.decide() {
				r := d.SessionID
				if len(d.Victims) > 0 {
					if !due[r].IsZero() {
						t.Fatalf("seed %d: others end twice for %s", seed, nameOf(r))
					}
					due[r] = c.Now.Add(c.grace)
					made++
				}
				for _, v := range d.Victims {
					if twice[v] {
						t.Fatalf("seed %d: %s ends twice", seed, nameOf(v))
					}
					twice[v] = true
				}
			}
			for r, at := range due {
				if !c.Now.Before(at) && c.started[r].IsZero() {
					t.Fatalf("seed %d: %s has not started at %s", seed, nameOf(r), c.Now)
				}
			}
			if c.Now = c.Now.Add(10 * time.Second); c.Now.After(until) {
				break
			}
			c.next(c.Now)
		}
	}
	t.Logf("sessions were preempted %d times", made)
	if made < int(n)/20 {
		t.Errorf("sessions were preempted %d times: the worlds are too simple", made)
	}
}

// TestLeastIsEnded compares the victims of a request with every smaller set of victims.
func TestLeastIsEnded(t *testing.T) {
	n, ended := uint64(1000), 0
	if testing.Short() {
		n = 300
	}
	for seed := range n {
		w := newWorld(seed)
		s := evicting(plan.ScopeUser)
		s.agent("a", nil, nil, nil, nil, nil, nil)
		for i, next := 0, 0; next < 6; i++ {
			size := min(1+w.IntN(3), 6-next)
			s.victim(fmt.Sprint("v", i), "a", next, size, time.Duration(10+w.IntN(100))*time.Minute)
			next += size
		}
		r := s.ask("new", 0, resource.Slots{"cuda.device": int64(1 + w.IntN(6))})
		r.Priority = 1
		d := s.decide(t)["new"]
		if len(d.Victims) == 0 {
			t.Fatalf("seed %d: no session is preempted", seed)
		}
		ended += len(d.Victims)
		freed := 0
		for _, v := range d.Victims {
			i := slices.IndexFunc(s.Running, func(x plan.Running) bool { return x.SessionID == v })
			freed += len(s.Running[i].Holds)
		}
		for _, v := range d.Victims {
			i := slices.IndexFunc(s.Running, func(x plan.Running) bool { return x.SessionID == v })
			if freed-len(s.Running[i].Holds) >= int(r.Kernels[0].Slots["cuda.device"]) {
				t.Fatalf("seed %d: %s could be spared", seed, nameOf(v))
			}
		}
	}
	if ended < int(n) {
		t.Errorf("%d victims", ended)
	}
}
