package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestStrategiesChooseAgents puts sessions of one core on three agents: b is the fullest, c is the
// emptiest, and a got a kernel last.
func TestStrategiesChooseAgents(t *testing.T) {
	for strategy, want := range map[plan.Strategy][]string{
		plan.StrategyPack:         {"b", "b", "b"},
		plan.StrategyConcentrated: {"b", "b", "b"},
		plan.StrategyDispersed:    {"c", "c", "a"},
		plan.StrategyRoundRobin:   {"c", "b", "a"},
	} {
		t.Run(string(strategy), func(t *testing.T) {
			s := newSite()
			s.Groups[0].Strategy = strategy
			for i, name := range []string{"a", "b", "c"} {
				a := s.agent(name, nil)
				a.LastUsed = noon.Add(-time.Duration(i) * time.Hour)
				used := map[string]int64{"a": 3000, "b": 5000, "c": 0}[name]
				a.Devices[0].Used, a.Devices[1].Used = resource.Slots{"cpu": used}, resource.Slots{"mem": used / 1000}
				if name == "b" {
					a.Devices[2].Used = resource.Slots{"cuda.shares": 500}
				}
			}
			for i := range want {
				s.ask(fmt.Sprint(i), time.Duration(-i), resource.Slots{"cpu": 1000, "mem": 1, "cuda.shares": 100})
			}
			got := s.decide(t)
			for i, agent := range want {
				if d := got[fmt.Sprint(i)]; !d.Placed() || nameOf(d.Assignments[0].AgentID) != agent {
					t.Errorf("session %d: %v, want agent %s", i, places(d), agent)
				}
			}
		})
	}
}

// TestAcceleratorsAreLeftToWhoAsksForThem has an agent without accelerators, which is otherwise the
// worse choice and has room for one session.
func TestAcceleratorsAreLeftToWhoAsksForThem(t *testing.T) {
	for _, strategy := range plan.Strategies {
		t.Run(string(strategy), func(t *testing.T) {
			s := newSite()
			s.Groups[0].Strategy = strategy
			s.agent("gpu", nil)
			plain := s.agent("plain")
			plain.LastUsed = noon
			plain.Devices[0].Used = resource.Slots{"cpu": 4000}
			if strategy == plan.StrategyConcentrated {
				s.Agents[0].Devices[0].Used = resource.Slots{"cpu": 5000}
			}
			s.ask("first", time.Minute, resource.Slots{"cpu": 3000})
			s.ask("second", 0, resource.Slots{"cpu": 3000})
			got := s.decide(t)
			for name, agent := range map[string]string{"first": "plain", "second": "gpu"} {
				if d := got[name]; !d.Placed() || nameOf(d.Assignments[0].AgentID) != agent {
					t.Errorf("%s is on %v, want %s", name, d.Assignments, agent)
				}
			}
		})
	}
}

// TestPackKeepsRoomForTheDemand requests a tenth of a device while two devices have room. The
// request gets the device whose rest is less useful, so that a half stays free for other requests.
func TestPackKeepsRoomForTheDemand(t *testing.T) {
	for name, c := range map[string]struct {
		demand resource.Slots
		want   string
	}{
		"halves are requested":     {resource.Slots{"cuda.shares": 500}, "b/0 cuda.shares 100"},
		"six tenths are requested": {resource.Slots{"cuda.shares": 600}, "a/0 cuda.shares 100"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.agent("a", resource.Slots{"cuda.shares": 500}) // half free
			s.agent("b", resource.Slots{"cuda.shares": 400}) // six tenths free
			s.Demand = []plan.Demand{{Group: idOf("group"), Slots: c.demand, Weight: 1}}
			s.ask("s", 0, resource.Slots{"cuda.shares": 100})
			if got := places(s.decide(t)["s"]); !slices.Equal(got, []string{c.want}) {
				t.Errorf("on %v, want %s", got, c.want)
			}
		})
	}
}

// TestStrategiesKeepTheRules plans the random worlds with every strategy.
func TestStrategiesKeepTheRules(t *testing.T) {
	for _, strategy := range plan.Strategies {
		for seed := range uint64(200) {
			s := newWorld(seed).snapshot()
			for i := range s.Groups {
				s.Groups[i].Strategy = strategy
			}
			replay(t, s, plan.Plan(s))
		}
	}
}
