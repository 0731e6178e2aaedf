package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

func TestTogether(t *testing.T) {
	one := resource.Slots{"cuda.device": 1}
	for name, c := range map[string]struct {
		circle  plan.Together
		asks    int
		placed  int
		agents  int // agents that the sessions run on
		dropped int // agents that the rule of the group excludes for the last session
	}{
		"spread":             {plan.Together{Spread: true}, 4, 4, 3, 0},
		"spread, strictly":   {plan.Together{Spread: true, Strict: true}, 4, 3, 3, 3},
		"packed":             {plan.Together{}, 3, 3, 1, 0},
		"packed on two":      {plan.Together{}, 5, 5, 2, 0},
		"packed, strictly":   {plan.Together{Strict: true}, 5, 4, 1, 2},
		"packed, small ones": {plan.Together{}, 2, 2, 1, 0},
	} {
		for _, strategy := range plan.Strategies {
			t.Run(name+" by "+string(strategy), func(t *testing.T) {
				s := newSite()
				s.Groups[0].Strategy = strategy
				s.agent("a", nil, nil)
				s.agent("b", nil, nil, nil, nil)
				s.agent("c", nil, nil)
				c.circle.ID = idOf("circle")
				for i := range c.asks {
					s.ask(fmt.Sprint(i), 0, one).Together = &c.circle
				}
				placed, on := 0, map[uuid.UUID]bool{}
				for _, d := range s.decide(t) {
					if !d.Placed() {
						if got := dropped(d.Waiting, "group"); got != c.dropped {
							t.Errorf("%d agents are dropped for the group: %s", got, d.Waiting.Summary)
						}
						continue
					}
					placed++
					on[d.Assignments[0].AgentID] = true
				}
				if placed != c.placed || len(on) != c.agents {
					t.Errorf("%d are placed on %d agents, want %d on %d", placed, len(on), c.placed, c.agents)
				}
			})
		}
	}
}

// Running sessions of a group count, and ended sessions do not.
func TestTogetherWithWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		circle plan.Together
		want   string
	}{
		"spread": {plan.Together{Spread: true, Strict: true}, "b"},
		"packed": {plan.Together{Strict: true}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite()
			s.agent("a", nil, nil)
			s.agent("b", nil, nil)
			c.circle.ID = idOf("circle")
			s.runs("first", "a/0", "cuda.device", 1).Together = c.circle.ID
			s.ask("next", 0, resource.Slots{"cuda.device": 1}).Together = &c.circle
			d := s.decide(t)["next"]
			if !d.Placed() || nameOf(d.Assignments[0].AgentID) != c.want {
				t.Errorf("%+v", d)
			}
		})
	}
}
