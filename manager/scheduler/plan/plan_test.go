package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// idOf returns a readable id: the bytes of the name.
func idOf(name string) (id uuid.UUID) {
	copy(id[:], name)
	return id
}

// site is a cluster of one group, written by hand.
type site struct{ plan.Snapshot }

func newSite() *site {
	return &site{plan.Snapshot{
		Now:    noon,
		Groups: []plan.Group{{ID: idOf("group"), Name: "default"}},
		SlotTypes: []plan.SlotType{
			{Name: "cuda.device", ExclusiveWith: []string{"cuda.shares", "cuda.mem"}},
		},
	}}
}

// agent has 8 cores, 64 of memory and one device per list of used slots.
func (s *site) agent(name string, gpus ...resource.Slots) *plan.Agent {
	a := plan.Agent{
		ID: idOf(name), Name: name, Group: idOf("group"), Schedulable: true, Architecture: "amd64",
		Devices: []plan.Device{
			{ID: idOf(name + "/cpu"), Allocatable: true, Healthy: true, Capacity: resource.Slots{"cpu": 8000}},
			{ID: idOf(name + "/mem"), Allocatable: true, Healthy: true, Capacity: resource.Slots{"mem": 64}},
		},
	}
	for i, used := range gpus {
		a.Devices = append(a.Devices, plan.Device{
			ID: idOf(fmt.Sprintf("%s/%d", name, i)), Allocatable: true, Healthy: true, Used: used,
			Capacity: resource.Slots{"cuda.device": 1, "cuda.shares": 1000, "cuda.mem": 80},
		})
	}
	s.Agents = append(s.Agents, a)
	return &s.Agents[len(s.Agents)-1]
}

// ask queues a session that has waited for age.
func (s *site) ask(name string, age time.Duration, kernels ...resource.Slots) *plan.Request {
	r := plan.Request{SessionID: idOf(name), Owner: idOf("user"), Group: idOf("group"), Created: noon.Add(-age)}
	for i, slots := range kernels {
		r.Kernels = append(r.Kernels, plan.KernelRequest{ID: idOf(fmt.Sprintf("%s/%d", name, i)), Slots: slots})
	}
	s.Pending = append(s.Pending, r)
	return &s.Pending[len(s.Pending)-1]
}

// decide plans, checks the rules and returns the decisions by session.
func (s *site) decide(t *testing.T) map[string]plan.Decision {
	t.Helper()
	decisions := plan.Plan(&s.Snapshot)
	replay(t, &s.Snapshot, decisions)
	by := map[string]plan.Decision{}
	for _, d := range decisions {
		by[nameOf(d.SessionID)] = d
	}
	return by
}

func nameOf(id uuid.UUID) string {
	n := 0
	for n < len(id) && id[n] != 0 {
		n++
	}
	return string(id[:n])
}

// places returns the accelerators of a decision, such as "agent/0 cuda.shares 500".
func places(d plan.Decision) []string {
	var list []string
	for _, as := range d.Assignments {
		for _, al := range as.Allocs {
			if al.Slot != "cpu" && al.Slot != "mem" {
				list = append(list, fmt.Sprintf("%s %s %d", nameOf(al.DeviceID), al.Slot, al.Amount))
			}
		}
	}
	return list
}

func TestPartsOfDevices(t *testing.T) {
	half, most := resource.Slots{"cuda.shares": 500}, resource.Slots{"cuda.shares": 800}
	for name, c := range map[string]struct {
		gpus []resource.Slots
		ask  resource.Slots
		want []string // nil: the session waits
		why  report.DroppedAgents
	}{
		"part of a fresh device":          {[]resource.Slots{nil}, resource.Slots{"cuda.shares": 300}, []string{"a/0 cuda.shares 300"}, report.DroppedAgents{}},
		"the fullest that has room":       {[]resource.Slots{nil, half, most}, resource.Slots{"cuda.shares": 300}, []string{"a/1 cuda.shares 300"}, report.DroppedAgents{}},
		"two halves are not one":          {[]resource.Slots{half, half}, resource.Slots{"cuda.shares": 1000}, nil, report.DroppedAgents{Check: "slot_contiguity", Slot: "cuda.shares", Count: 1}},
		"not enough in sum":               {[]resource.Slots{most, most}, resource.Slots{"cuda.shares": 500}, nil, report.DroppedAgents{Check: "slot_total", Slot: "cuda.shares", Count: 1}},
		"one and a half":                  {[]resource.Slots{half, nil}, resource.Slots{"cuda.shares": 1500}, []string{"a/1 cuda.shares 1000", "a/0 cuda.shares 500"}, report.DroppedAgents{}},
		"one and a half without a whole":  {[]resource.Slots{half, half, half}, resource.Slots{"cuda.shares": 1500}, nil, report.DroppedAgents{Check: "slot_contiguity", Slot: "cuda.shares", Count: 1}},
		"whole devices":                   {[]resource.Slots{half, nil, nil}, resource.Slots{"cuda.device": 2}, []string{"a/1 cuda.device 1", "a/2 cuda.device 1"}, report.DroppedAgents{}},
		"a shared device is not whole":    {[]resource.Slots{half, nil}, resource.Slots{"cuda.device": 2}, nil, report.DroppedAgents{Check: "slot_total", Slot: "cuda.device", Count: 1}},
		"a whole device has no shares":    {[]resource.Slots{{"cuda.device": 1}}, resource.Slots{"cuda.shares": 100}, nil, report.DroppedAgents{Check: "slot_total", Slot: "cuda.shares", Count: 1}},
		"memory and shares of one device": {[]resource.Slots{{"cuda.mem": 70}, half}, resource.Slots{"cuda.shares": 500, "cuda.mem": 40}, []string{"a/1 cuda.shares 500", "a/1 cuda.mem 40"}, report.DroppedAgents{}},
		"memory and shares apart":         {[]resource.Slots{{"cuda.mem": 70}, most}, resource.Slots{"cuda.shares": 500, "cuda.mem": 40}, nil, report.DroppedAgents{Check: "slot_contiguity", Slot: "cuda.shares", Count: 1}},
		"unknown slot":                    {[]resource.Slots{nil}, resource.Slots{"tpu.device": 1}, nil, report.DroppedAgents{Check: "slot_missing", Slot: "tpu.device", Count: 1}},
		"cpu first":                       {[]resource.Slots{nil}, resource.Slots{"cpu": 9000, "mem": 65, "cuda.device": 2}, nil, report.DroppedAgents{Check: "cpu", Slot: "cpu", Count: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.agent("a", c.gpus...)
			s.ask("s", 0, c.ask)
			d := s.decide(t)["s"]
			if diff := cmp.Diff(c.want, places(d)); diff != "" {
				t.Error(diff)
			}
			if c.want == nil {
				if d.Placed() {
					t.Fatal("was placed")
				}
				if diff := cmp.Diff([]report.DroppedAgents{c.why}, d.Waiting.Dropped); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestLargeMemoryIsLeftToWhoNeedsIt has slots that exclude each other, so the shares and the memory
// of a kernel are on two different devices.
func TestLargeMemoryIsLeftToWhoNeedsIt(t *testing.T) {
	for name, c := range map[string]struct {
		ask  resource.Slots
		want []string
	}{
		"shares": {
			resource.Slots{"cuda.shares": 500, "cuda.mem": 70},
			[]string{"a/1 cuda.shares 500", "a/0 cuda.mem 70"},
		},
		"whole device": {
			resource.Slots{"cuda.device": 1, "cuda.mem": 70},
			[]string{"a/1 cuda.device 1", "a/0 cuda.mem 70"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.SlotTypes = []plan.SlotType{{Name: "cuda.mem", ExclusiveWith: []string{"cuda.*"}}}
			a := s.agent("a", nil, nil)
			a.Devices[3].Capacity["cuda.mem"] = 40
			s.ask("s", 0, c.ask)
			if diff := cmp.Diff(c.want, places(s.decide(t)["s"])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAgedHeadStartsInTheEnd creates and ends small sessions all the time, until a session that
// needs four devices of one agent has started.
func TestAgedHeadStartsInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  bool
	}{"guarded": {time.Minute, true}, "never guarded": {-1, false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(7)
			s := newSite()
			s.Groups[0].HoldAfter = c.after
			one := resource.Slots{"cuda.device": 1}
			for _, a := range []string{"a", "b", "c"} {
				s.agent(a, one.Clone(), one.Clone(), one.Clone(), one.Clone())
			}
			started := false
			for round := 0; round < 500 && !started; round++ {
				s.Pending = nil
				s.ask("big", time.Hour, resource.Slots{"cuda.device": 4})
				for i := range 4 {
					s.ask(fmt.Sprintf("small%d-%d", round, i), 0, one)
				}
				// One running session of the cluster ends in each round.
				a := &s.Agents[w.IntN(len(s.Agents))]
				a.Devices[2+w.IntN(4)].Used = nil
				decisions := plan.Plan(&s.Snapshot)
				used := replay(t, &s.Snapshot, decisions).used
				for i := range s.Agents {
					for j := range s.Agents[i].Devices {
						s.Agents[i].Devices[j].Used = used[s.Agents[i].Devices[j].ID]
					}
				}
				started = decisions[0].Placed()
			}
			if started != c.want {
				t.Errorf("started: %v, want %v", started, c.want)
			}
		})
	}
}

func TestGangIsAllOrNone(t *testing.T) {
	s := newSite()
	s.agent("a", nil, nil)
	s.agent("b", nil)
	two := resource.Slots{"cpu": 1000, "cuda.device": 2}
	s.ask("gang", time.Minute, two, two)
	s.ask("later", 0, two)
	got := s.decide(t)
	if w := got["gang"].Waiting; w == nil || w.Nearest == nil || w.Nearest.Agent != "b" {
		t.Errorf("gang: %+v", w)
	} else if want := "No machine has 2 free cuda.device for container 2 of 2 after the containers before it are placed: the most that any machine has free is 1."; w.Summary != want {
		t.Errorf("summary %q, want %q", w.Summary, want)
	}
	if d := got["later"]; !d.Placed() || nameOf(d.Assignments[0].AgentID) != "a" {
		t.Errorf("the gang has devices that it did not get: %+v", d.Waiting)
	}
}

func TestReport(t *testing.T) {
	s := newSite()
	s.agent("off").Schedulable = false
	for _, why := range []string{"disks", "disks", "fans"} {
		a := s.agent("drains for " + why)
		a.Schedulable, a.Closed, a.Because = false, plan.ClosedDraining, why
	}
	gone := s.agent("gone")
	gone.Schedulable, gone.Closed = false, plan.ClosedLost
	s.agent("arm").Architecture = "arm64"
	s.agent("bare").Volumes = nil
	for _, x := range []struct {
		name string
		used resource.Slots
	}{{"empty", resource.Slots{"cuda.shares": 900}}, {"full", resource.Slots{"cuda.device": 1}}, {"nearest", resource.Slots{"cuda.shares": 600}}} {
		s.agent(x.name, x.used).Volumes = []string{"home"}
	}
	s.agent("plain").Volumes = []string{"home"}
	r := s.ask("s", 0, resource.Slots{"cpu": 1000, "cuda.shares": 500})
	r.Architecture, r.Volumes = "amd64", []string{"home"}
	want := &report.Pending{
		Stage: report.StageRoom, Position: 1, DecidedAt: noon, Agents: 11,
		Summary: "No machine can run the session: 1 is cordoned, 3 are draining (disks; fans), 1 is unreachable, 1 has another processor architecture, " +
			"1 has no access to a volume that the session mounts, 1 has no cuda.shares, 3 have less than 0.5 free cuda.shares (at most 0.4).",
		Dropped: []report.DroppedAgents{
			{Check: "cordoned", Count: 1}, {Check: "draining", Count: 3, Why: []string{"disks", "fans"}}, {Check: "lost", Count: 1},
			{Check: "architecture", Count: 1}, {Check: "volume_missing", Count: 1},
			{Check: "slot_missing", Slot: "cuda.shares", Count: 1}, {Check: "slot_total", Slot: "cuda.shares", Count: 3},
		},
		Nearest: &report.NearestFit{Agent: "nearest", Slot: "cuda.shares", Requested: "0.5", Free: "0.4"},
	}
	if diff := cmp.Diff(want, s.decide(t)["s"].Waiting); diff != "" {
		t.Error(diff)
	}
}

func TestLimits(t *testing.T) {
	one := 1
	s := newSite()
	s.agent("a")
	s.Limits = []plan.Limit{
		{Scope: plan.ScopeUser, ID: idOf("user"), Policy: "small", Total: resource.Slots{"cpu": 2000}, MaxSessions: &one, Used: resource.Slots{"cpu": 500}},
		{Scope: plan.ScopeProject, ID: uuid.Nil, Policy: "team", Total: resource.Slots{"mem": 2}},
	}
	s.ask("first", 3*time.Minute, resource.Slots{"cpu": 1000, "mem": 1})
	s.ask("second", 2*time.Minute, resource.Slots{"cpu": 1000, "mem": 2})
	s.ask("other", time.Minute, resource.Slots{"cpu": 7000, "mem": 1}).Owner = idOf("other")
	got := s.decide(t)
	for _, name := range []string{"first", "other"} {
		if d := got[name]; !d.Placed() {
			t.Errorf("%s waits: %s", name, d.Waiting.Summary)
		}
	}
	want := &report.Pending{
		Stage: report.StageLimits, Position: 1, DecidedAt: noon, Agents: 1,
		Summary: "The user's policy small allows 1 sessions; 1 in use and 1 requested (and 2 more limits).",
		Limits: []report.LimitReached{
			{Scope: "user", Policy: "small", What: "sessions", Used: "1", Requested: "1", Limit: "1"},
			{Scope: "user", Policy: "small", What: "cpu", Used: "1.5", Requested: "1", Limit: "2"},
			{Scope: "project", Policy: "team", What: "mem", Used: "1", Requested: "2", Limit: "2"},
		},
	}
	if diff := cmp.Diff(want, got["second"].Waiting); diff != "" {
		t.Error(diff)
	}
}

// TestAgedHeadIsNotPassed fills an agent with other sessions as long as the head is young. From a
// certain age of the head on, the agent stays free for it.
func TestAgedHeadIsNotPassed(t *testing.T) {
	for name, c := range map[string]struct {
		age    time.Duration
		after  time.Duration
		passed bool
	}{
		"young":         {5 * time.Minute, 0, true},
		"old":           {11 * time.Minute, 0, false},
		"group's own":   {5 * time.Minute, time.Minute, false},
		"never guarded": {time.Hour, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.Groups[0].HoldAfter = c.after
			s.agent("a", nil, resource.Slots{"cuda.shares": 100}) // lacks one device
			s.agent("b", nil)                                     // the agent can never have two devices
			s.ask("head", c.age, resource.Slots{"cuda.device": 2})
			s.ask("first", 2*time.Minute, resource.Slots{"cuda.device": 1})
			s.ask("second", time.Minute, resource.Slots{"cuda.device": 1})
			got := s.decide(t)
			if d := got["first"]; !d.Placed() {
				t.Errorf("agent b is free: %s", d.Waiting.Summary)
			}
			if d := got["second"]; d.Placed() != c.passed {
				t.Errorf("second was placed: %v, want %v", d.Placed(), c.passed)
			} else if !c.passed && dropped(d.Waiting, "reserved") != 1 {
				t.Errorf("report %+v", d.Waiting)
			}
		})
	}
}

func TestHopelessHeadHoldsNothing(t *testing.T) {
	s := newSite()
	s.agent("a", nil)
	s.ask("head", time.Hour, resource.Slots{"cuda.device": 9})
	s.ask("later", 0, resource.Slots{"cuda.device": 1})
	if d := s.decide(t)["later"]; !d.Placed() {
		t.Error(d.Waiting.Summary)
	}
}

func TestAvoidedAgentIsTakenLast(t *testing.T) {
	s := newSite()
	s.agent("a", nil)
	s.agent("b", nil)
	for _, name := range []string{"s1", "s2"} {
		s.ask(name, 0, resource.Slots{"cuda.device": 1}).AvoidAgents = []uuid.UUID{idOf("a")}
	}
	got := s.decide(t)
	for name, agent := range map[string]string{"s1": "b/0 cuda.device 1", "s2": "a/0 cuda.device 1"} {
		if diff := cmp.Diff([]string{agent}, places(got[name])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCanEver(t *testing.T) {
	s := newSite()
	s.agent("a", resource.Slots{"cuda.device": 1}).Schedulable = false
	s.agent("b").Volumes = []string{"home"}
	for name, c := range map[string]struct {
		slots  resource.Slots
		change func(*plan.Request)
		field  string // "": the request is possible
		limit  string
	}{
		"a busy device of an unschedulable agent": {slots: resource.Slots{"cuda.device": 1}},
		"unknown slot":     {slots: resource.Slots{"gold": 1}, field: "slots.gold", limit: "0"},
		"zero":             {slots: resource.Slots{"cpu": 0}, field: "slots.cpu", limit: "0"},
		"negative":         {slots: resource.Slots{"mem": -1}, field: "slots.mem", limit: "0"},
		"too many cores":   {slots: resource.Slots{"cpu": 8001}, field: "slots.cpu", limit: "8"},
		"too many devices": {slots: resource.Slots{"cuda.device": 2}, field: "slots.cuda.device", limit: "1"},
		"not on one agent": {
			slots: resource.Slots{"cuda.device": 1}, change: func(r *plan.Request) { r.Volumes = []string{"home"} }, field: "slots",
		},
		"architecture": {
			slots: resource.Slots{"cpu": 1}, change: func(r *plan.Request) { r.Architecture = "arm64" }, field: "architecture", limit: "amd64",
		},
		"volume": {
			slots: resource.Slots{"cpu": 1}, change: func(r *plan.Request) { r.Volumes = []string{"attic"} }, field: "mounts",
		},
		"gang beyond the group": {
			slots: resource.Slots{"cuda.device": 1}, change: func(r *plan.Request) { r.Kernels = append(r.Kernels, r.Kernels[0]) }, field: "kernels", limit: "1",
		},
		"unknown slot, no agents": {
			slots: resource.Slots{"gold": 1}, change: func(r *plan.Request) { r.Group = idOf("empty") }, field: "slots.gold", limit: "0",
		},
		"no agents yet": {
			slots: resource.Slots{"cuda.device": 99}, change: func(r *plan.Request) { r.Group = idOf("empty") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := plan.Request{Group: idOf("group"), Kernels: []plan.KernelRequest{{Slots: c.slots}}}
			if c.change != nil {
				c.change(&r)
			}
			got := plan.CanEver(&s.Snapshot, &r)
			if (len(got) > 0) != (c.field != "") || c.field != "" && (got[0].Field != c.field || got[0].Limit != c.limit) {
				t.Errorf("got %+v, want field %q, limit %q", got, c.field, c.limit)
			}
		})
	}
}
