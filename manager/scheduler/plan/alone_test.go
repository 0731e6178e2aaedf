package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestAgentsWithoutANetwork has agents whose kernels cannot reach kernels on other agents. All
// kernels of a session run on one agent, or the session waits.
func TestAgentsWithoutANetwork(t *testing.T) {
	few := 3
	for name, c := range map[string]struct {
		free      []int64 // free cores of each agent
		alone     []int   // indexes of the agents without a network
		networked *int
		kernels   int // number of kernels, of one core each
		on        int // number of agents in use; 0: the session waits
		wantText  string
	}{
		"the only one, with room":                    {[]int64{2}, []int{0}, nil, 2, 1, ""},
		"the only one, without room":                 {[]int64{1}, []int{0}, nil, 2, 0, "room for some of the containers, but no network between them and the others (a0: off)"},
		"no room, and no network":                    {[]int64{0}, []int{0}, nil, 2, 0, "No machine has 1 free CPU core for container 1 of 2: the most that any machine has free is 0."},
		"with others that have room":                 {[]int64{1, 1, 1}, []int{0}, nil, 2, 2, ""},
		"as large as the session":                    {[]int64{3, 1, 1}, []int{0}, nil, 3, 1, ""},
		"needed for a part of it":                    {[]int64{1, 1, 2}, []int{2}, nil, 3, 0, "(a2: off)"},
		"one kernel":                                 {[]int64{1}, []int{0}, nil, 1, 1, ""},
		"a network for so many":                      {[]int64{1, 1, 1}, nil, &few, 3, 3, ""},
		"no network for so many":                     {[]int64{1, 1, 1, 1}, nil, &few, 4, 0, "no network for so many containers is left"},
		"no network for so many, and none requested": {[]int64{4, 1}, nil, &few, 4, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := uuid.New()
			s := &plan.Snapshot{Now: noon, Groups: []plan.Group{{ID: group, Name: "g"}}, Networked: c.networked}
			for i, n := range c.free {
				s.Agents = append(s.Agents, plan.Agent{ID: uuid.New(), Name: fmt.Sprint("a", i), Group: group, Schedulable: true, Devices: []plan.Device{
					{ID: uuid.New(), Allocatable: true, Healthy: true, Capacity: resource.Slots{"cpu": 8000}, Used: resource.Slots{"cpu": 8000 - 1000*n}},
				}})
			}
			alone := map[uuid.UUID]bool{}
			for _, i := range c.alone {
				s.Agents[i].Alone = "off"
				alone[s.Agents[i].ID] = true
			}
			r := plan.Request{SessionID: uuid.New(), Group: group, Created: noon}
			for range c.kernels {
				r.Kernels = append(r.Kernels, plan.KernelRequest{ID: uuid.New(), Slots: resource.Slots{"cpu": 1000}})
			}
			s.Pending = []plan.Request{r}
			d := plan.Plan(s)[0]
			used := map[uuid.UUID]bool{}
			for _, a := range d.Assignments {
				used[a.AgentID] = true
			}
			if len(used) != c.on || d.Placed() != (c.on > 0) {
				t.Fatalf("it is on %d agents, want %d: %+v", len(used), c.on, d)
			}
			for id := range used {
				if alone[id] && len(used) > 1 {
					t.Errorf("it is on an agent without a network, and on others")
				}
			}
			if d.Waiting != nil && !strings.Contains(d.Waiting.Summary, c.wantText) {
				t.Errorf("it waits because %s", d.Waiting.Summary)
			}
		})
	}
}

// A head of two kernels waits for two devices of one agent if the agents have no network with each
// other, and for devices of any agents if they have one. Other devices are free for other sessions.
func TestHeadOnAgentsWithoutANetwork(t *testing.T) {
	one := resource.Slots{"cuda.device": 1}
	none := 1
	for name, c := range map[string]struct {
		alone     string
		networked *int
		after     time.Duration // how long the head waits before others are checked
		passes    bool          // whether another session gets the device that is free now
	}{
		"with a network":                     {"", nil, time.Hour, false},
		"without":                            {"off", nil, 2 * time.Hour, true},
		"no network is left for two of them": {"", &none, 2 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.Networked = c.networked
			s.agent("a", nil, nil).Alone = c.alone
			s.agent("b", nil, nil).Alone = c.alone
			s.runs("first", "a/0", "cuda.device", 1).Ends = noon.Add(time.Hour)
			s.runs("second", "a/1", "cuda.device", 1).Ends = noon.Add(2 * time.Hour)
			s.runs("third", "b/1", "cuda.device", 1).Ends = noon.Add(3 * time.Hour)
			s.ask("head", time.Hour, one, one)
			s.ask("later", 0, one)
			got := s.decide(t)
			if w := got["head"].Waiting; w == nil || w.EstimatedStart == nil || !w.EstimatedStart.Equal(noon.Add(c.after)) {
				t.Errorf("the head: %+v, want it to start after %s", w, c.after)
			}
			if d := got["later"]; d.Placed() != c.passes {
				t.Errorf("a later session is placed: %v, %+v", d.Placed(), d.Waiting)
			}
		})
	}
}

// Sessions are preempted for one of two kernels only if that makes room for both kernels on agents
// that have a network with each other.
func TestRoomOnAgentsWithoutANetwork(t *testing.T) {
	one := resource.Slots{"cuda.device": 1}
	for name, c := range map[string]struct {
		alone string
		fixed bool // a session that cannot be preempted uses a device of each agent
		ends  string
	}{
		"the youngest of all":                 {"", false, "middle young"},
		"two of one agent":                    {"off", false, "middle old"},
		"the only preemptible ones":           {"", true, "middle young"},
		"no session, because that is too few": {"off", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := evicting(plan.ScopeGroup)
			s.agent("a", nil, nil).Alone = c.alone
			s.agent("b", nil, nil).Alone = c.alone
			s.victim("young", "a", 0, 1, time.Hour)
			s.victim("fixed", "a", 1, 1, time.Hour).Preemptible = false
			s.victim("middle", "b", 0, 1, 2*time.Hour)
			s.victim("old", "b", 1, 1, 3*time.Hour).Preemptible = !c.fixed
			s.ask("new", 0, one, one).Priority = 1
			d := s.decide(t)["new"]
			if got := named(d.Victims); d.Placed() || got != c.ends {
				t.Fatalf("ends %q, want %q: %+v", got, c.ends, d.Waiting)
			}
			if room := d.Waiting.Room; (room != nil) != (c.ends != "") || room != nil && len(room.Parts) != 2 {
				t.Errorf("room %+v", room)
			}
		})
	}
}
