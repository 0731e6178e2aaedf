package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// review plans a snapshot and returns the foreseen start of each waiting session.
func review(s *plan.Snapshot) map[uuid.UUID]*time.Time {
	estimates := map[uuid.UUID]*time.Time{}
	for _, d := range new(plan.Planner).Decide(s, plan.Change{All: true, Review: true}) {
		if !d.Placed() {
			estimates[d.SessionID] = d.Waiting.EstimatedStart
		}
	}
	return estimates
}

// TestForeseen has two devices, which are in use for one hour and for two. The foreseen start of a
// waiting request assumes that the sessions before it end on time.
func TestForeseen(t *testing.T) {
	one, hour := resource.Slots{"cuda.device": 1}, time.Hour
	begin := func() *site {
		s := newSite()
		s.agent("a", nil, nil)
		for i := range 2 {
			s.runs(fmt.Sprint("old", i), fmt.Sprint("a/", i), "cuda.device", 1).Ends = noon.Add(time.Duration(i+1) * hour)
		}
		s.ask("first", hour/2, one).Lifetime = 4 * hour
		s.ask("second", hour/3, one).Lifetime = hour
		s.ask("third", hour/4, one)
		return s
	}
	two := 2
	for name, c := range map[string]struct {
		change               func(*site)
		first, second, third time.Duration // since noon; 0: unknown
	}{
		"all ends are known":          {func(*site) {}, hour, 2 * hour, 3 * hour},
		"the first may run for ever":  {func(s *site) { s.Running[1].Ends = time.Time{} }, hour, 5 * hour, 6 * hour},
		"the second may run for ever": {func(s *site) { s.Pending[1].Lifetime = 0 }, hour, 2 * hour, 5 * hour},
		"no end is known":             {func(s *site) { s.Running[0].Ends, s.Running[1].Ends = time.Time{}, time.Time{} }, 0, 0, 0},
		"one should have ended":       {func(s *site) { s.Running[0].Ends = noon.Add(-hour); s.Groups[0].HoldAfter = -1 }, 2 * hour, 2 * hour, 3 * hour},
		"an unknown order":            {func(s *site) { s.Groups[0].Order, s.Groups[0].HoldAfter = plan.OrderFairShare, -1 }, 0, 0, 0},
		"one has a start time":        {func(s *site) { s.Pending[1].StartsAt = noon.Add(150 * time.Minute) }, hour, 5 * hour, 2 * hour},
		"the third requests too much": {func(s *site) { s.Pending[2].Kernels[0].Slots = resource.Slots{"cuda.device": 3} }, hour, 2 * hour, 0},
		"a limit": {func(s *site) {
			s.Limits = []plan.Limit{{Scope: plan.ScopeUser, ID: idOf("user"), Total: resource.Slots{}, MaxSessions: &two, Sessions: 2}}
		}, hour, 2 * hour, 3 * hour},
		"a limit of one": {func(s *site) {
			one := 1
			s.Limits = []plan.Limit{{Scope: plan.ScopeUser, ID: idOf("user"), Total: resource.Slots{}, MaxSessions: &one, Sessions: 2}}
		}, 2 * hour, 6 * hour, 7 * hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin()
			c.change(s)
			estimates := review(&s.Snapshot)
			for name, after := range map[string]time.Duration{"first": c.first, "second": c.second, "third": c.third} {
				at := estimates[idOf(name)]
				if (at != nil) != (after != 0) || at != nil && !at.Equal(noon.Add(after)) {
					t.Errorf("%s has the estimate %v, want noon and %s", name, at, after)
				}
			}
		})
	}
}

// TestNothingStartsLaterThanForeseen lets time pass in random clusters without new requests. Each
// session with a foreseen start has started by then, and each session that starts and was near the
// head of the queue had a foreseen start. Sessions without a lifetime never end.
func TestNothingStartsLaterThanForeseen(t *testing.T) {
	n := uint64(1000)
	if testing.Short() {
		n = 200
	}
	heard, silent := 0, 0
	for seed := range n {
		w := newWorld(seed + n)
		c := newQueueAt(t, seed, pick(w, single, gang), true)
		holdAfter := pick(w, -1, time.Nanosecond, 90*time.Minute)
		c.Groups[0].HoldAfter, c.Groups[0].Order = holdAfter, pick(w, plan.OrderFIFO, plan.OrderLIFO, plan.OrderDRF)
		c.Groups[0].Strategy = pick(w, plan.Strategies...)
		c.hold()
		estimates := review(c.Snapshot)
		first := c.Now
		for until := noon.Add(48 * time.Hour); ; {
			c.decide()
			due := until
			for _, r := range c.Pending {
				if at := r.Created.Add(holdAfter); holdAfter > 0 && at.After(c.Now) && at.Before(due) {
					due = at
				}
			}
			if !c.next(due) && due.Equal(until) {
				break
			}
		}
		for id, at := range estimates {
			started := c.started[id]
			switch {
			case at != nil && (started.IsZero() || started.After(*at)):
				t.Fatalf("seed %d: %s has the estimate %s and starts at %s", seed, nameOf(id), at, started)
			case at != nil:
				heard++
			case started.After(first):
				silent++
			}
		}
	}
	t.Logf("%d had an estimate, %d started without one", heard, silent)
	if heard < int(n) || silent > heard/100 {
		t.Errorf("of %d worlds: %d had an estimate, %d started without one", n, heard, silent)
	}
}
