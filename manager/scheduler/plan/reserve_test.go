package plan_test

import (
	"testing"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// runs adds a running session to a site. The session uses an amount of a slot of a device.
func (s *site) runs(name, device, slot string, amount int64) *plan.Running {
	id := idOf(device)
	for i := range s.Agents {
		for j := range s.Agents[i].Devices {
			if d := &s.Agents[i].Devices[j]; d.ID == id {
				used := resource.Slots{}
				used.Add(d.Used)
				used[slot] += amount
				d.Used = used
			}
		}
	}
	s.Running = append(s.Running, plan.Running{
		SessionID: idOf(name), Owner: idOf("user"), Group: idOf("group"), Since: noon.Add(-time.Hour),
		Holds: []plan.Alloc{{DeviceID: id, Slot: slot, Amount: amount}},
	})
	return &s.Running[len(s.Running)-1]
}

// TestWhoMayPassTheHead has one agent with two devices. One of them is free, the other one will be
// free in an hour, and the head needs both.
func TestWhoMayPassTheHead(t *testing.T) {
	for name, c := range map[string]struct {
		slots    resource.Slots
		lifetime time.Duration
		known    bool // reports whether the end of the running session is known
		passes   bool
	}{
		"it ends before":                            {resource.Slots{"cuda.device": 1}, 59 * time.Minute, true, true},
		"it ends at the reserved time":              {resource.Slots{"cuda.device": 1}, time.Hour, true, true},
		"it ends too late":                          {resource.Slots{"cuda.device": 1}, 61 * time.Minute, true, false},
		"its end is unknown":                        {resource.Slots{"cuda.device": 1}, 0, true, false},
		"it uses devices that the head leaves free": {resource.Slots{"cpu": 4000}, 0, true, true},
		"it takes more than the head leaves":        {resource.Slots{"cpu": 4001}, 0, true, false},
		"the head's start is unknown":               {resource.Slots{"cuda.device": 1}, time.Minute, false, false},
		"it does not delay the head":                {resource.Slots{"cpu": 4000}, 0, false, true},
		"it delays the head":                        {resource.Slots{"cpu": 4001}, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.agent("a", nil, nil)
			x := s.runs("old", "a/0", "cuda.device", 1)
			if c.known {
				x.Ends = noon.Add(time.Hour)
			}
			s.ask("head", time.Hour, resource.Slots{"cuda.device": 2, "cpu": 4000})
			s.ask("later", 0, c.slots).Lifetime = c.lifetime
			got := s.decide(t)
			w := got["head"].Waiting
			if c.known && (w.EstimatedStart == nil || !w.EstimatedStart.Equal(noon.Add(time.Hour))) || !c.known && w.EstimatedStart != nil {
				t.Errorf("the head starts at %v", w.EstimatedStart)
			}
			d := got["later"]
			if d.Placed() != c.passes {
				t.Errorf("passes: %v, want %v", d.Placed(), c.passes)
			}
			if !d.Placed() && dropped(d.Waiting, "reserved") != 1 && c.slots["cpu"] != 4001 {
				t.Errorf("report %+v", d.Waiting)
			}
		})
	}
}

// A head that can never be served does not prevent that another request becomes the head.
func TestHopelessHeadIsNoHead(t *testing.T) {
	s := newSite()
	s.agent("a", nil, resource.Slots{"cuda.device": 1})
	s.ask("hopeless", 2*time.Hour, resource.Slots{"cuda.device": 9})
	s.ask("head", time.Hour, resource.Slots{"cuda.device": 2})
	s.ask("later", 0, resource.Slots{"cuda.device": 1})
	if d := s.decide(t)["later"]; d.Placed() {
		t.Error("it passes the head")
	}
}

// TestNoStarvationAndNoIdleMachine creates small sessions all the time on 16 devices. A large
// session needs 8 devices of one agent. With backfill, it starts at its foreseen time at the
// latest, and more devices are in use than if no session could pass it.
func TestNoStarvationAndNoIdleMachine(t *testing.T) {
	type result struct {
		estimated, started time.Time
		used               float64 // average of the devices in use, from the arrival of the large session to its start
	}
	run := func(t *testing.T, after time.Duration, pass bool) (res result) {
		w := newWorld(3)
		s := newSite()
		s.Groups[0].HoldAfter = after
		one := resource.Slots{"cuda.device": 1}
		for _, a := range []string{"a", "b"} {
			s.agent(a, nil, nil, nil, nil, nil, nil, nil, nil)
		}
		c := newClock(t, &s.Snapshot)
		arrive := func() {
			for len(c.Pending) < 20 {
				c.Pending = append(c.Pending, plan.Request{
					SessionID: w.id(), Group: idOf("group"), Created: c.Now, Lifetime: time.Duration(5+w.IntN(116)) * time.Minute,
					Kernels: []plan.KernelRequest{{ID: w.id(), Slots: one}},
				})
			}
		}
		for end := noon.Add(4 * time.Hour); c.Now.Before(end); {
			arrive()
			c.decide()
			c.next(end)
		}
		big := plan.Request{SessionID: idOf("big"), Group: idOf("group"), Created: c.Now.Add(-time.Minute),
			Kernels: []plan.KernelRequest{{ID: idOf("big/0"), Slots: resource.Slots{"cuda.device": 8}}}}
		c.Pending = []plan.Request{big}
		came, busy := c.Now, 0.0
		for end := came.Add(24 * time.Hour); c.Now.Before(end); {
			if pass {
				arrive()
			}
			for _, d := range c.decide() {
				if d.SessionID == big.SessionID && !d.Placed() && d.Waiting.EstimatedStart != nil && res.estimated.IsZero() {
					res.estimated = *d.Waiting.EstimatedStart
				}
			}
			if res.started = c.started[big.SessionID]; !res.started.IsZero() {
				break
			}
			from, running := c.Now, len(c.Running)
			c.next(end)
			busy += float64(running) * c.Now.Sub(from).Hours()
		}
		res.used = busy / c.Now.Sub(came).Hours()
		return res
	}
	with, alone, never := run(t, time.Nanosecond, true), run(t, time.Nanosecond, false), run(t, -1, true)
	t.Logf("backfill: started after %s with %.1f of 16 devices in use; without backfill: after %s with %.1f",
		with.started.Sub(noon), with.used, alone.started.Sub(noon), alone.used)
	if with.estimated.IsZero() || with.started.IsZero() || with.started.After(with.estimated) {
		t.Errorf("told %s, started %s", with.estimated, with.started)
	}
	if !with.started.Equal(alone.started) && !with.started.Before(alone.started) {
		t.Errorf("it starts at %s, and %s without backfill", with.started, alone.started)
	}
	if with.used < alone.used+2 || with.used < 12 {
		t.Errorf("%.1f devices are in use, %.1f without backfill", with.used, alone.used)
	}
	if !never.started.IsZero() {
		t.Errorf("it starts at %s without a reservation: the stream is too thin", never.started)
	}
}
