package plan_test

import (
	"fmt"
	"testing"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestImageIsPreferred checks that, of equal agents, one that has the image is chosen. An image
// neither outweighs the strategy nor delays a session.
func TestImageIsPreferred(t *testing.T) {
	s := newSite()
	for i := range 5 {
		s.agent(fmt.Sprint("a", i))
	}
	s.Agents[3].Images = map[string]bool{"python": true}
	s.ask("first", 0, resource.Slots{"cpu": 1000}).Image = "python"
	if d := s.decide(t)["first"]; !d.Placed() || d.Assignments[0].AgentID != s.Agents[3].ID {
		t.Errorf("not where the image is: %+v", d)
	}
	s.Pending = nil
	s.ask("another image", 0, resource.Slots{"cpu": 1000}).Image = "julia"
	if d := s.decide(t)["another image"]; !d.Placed() {
		t.Errorf("waits for an image: %+v", d)
	}
	s.Pending = nil
	s.Groups[0].Strategy = plan.StrategyConcentrated
	s.Agents[1].Devices[0].Used = resource.Slots{"cpu": 4000} // which is preferred
	s.ask("packed", 0, resource.Slots{"cpu": 1000}).Image = "python"
	if d := s.decide(t)["packed"]; !d.Placed() || d.Assignments[0].AgentID != s.Agents[1].ID {
		t.Errorf("the image outweighs the strategy: %+v", d)
	}
}

// TestMostOfAnImageIsPreferred checks that, of equal agents without the image, the one that has most of its layers is
// chosen, and that a small difference does not count.
func TestMostOfAnImageIsPreferred(t *testing.T) {
	s := newSite()
	lacks := layers{"a0": 400 << 20, "a1": 300 << 20, "a2": 50 << 20, "a3": 49 << 20}
	for i := range 5 {
		s.agent(fmt.Sprint("a", i))
		s.Agents[i].Layers = lacks
	}
	s.ask("most of it", 0, resource.Slots{"cpu": 1000}).Image = "python"
	if d := s.decide(t)["most of it"]; !d.Placed() || d.Assignments[0].AgentID != s.Agents[2].ID {
		t.Errorf("not where most of the image is: %+v", d)
	}
	s.Pending = nil
	s.Groups[0].Strategy = plan.StrategyConcentrated
	s.Agents[4].Devices[0].Used = resource.Slots{"cpu": 4000} // which is preferred
	s.ask("packed", 0, resource.Slots{"cpu": 1000}).Image = "python"
	if d := s.decide(t)["packed"]; !d.Placed() || d.Assignments[0].AgentID != s.Agents[4].ID {
		t.Errorf("layers outweigh the strategy: %+v", d)
	}
}

// layers has the bytes that agents lack of any image.
type layers map[string]int64

func (l layers) Lacks(agent, _ string) (int64, bool) {
	bytes, known := l[agent]
	return bytes, known
}
