package manager_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
)

// TestHowSessionsOfSeveralKernelsEnd checks that a batch session ends with its main kernel or with
// one that fails, and an interactive one with any.
func TestHowSessionsOfSeveralKernelsEnd(t *testing.T) {
	c := newCluster(t, 2)
	for _, one := range []struct {
		name    string
		in      managertest.Vars
		reason  session.TerminationReason
		outcome session.Result
	}{
		{"all well", input(managertest.Vars{"kernels": 3}, "each", "0", "0", "0"), "completed", "success"},
		{"the main one ends", input(managertest.Vars{"kernels": 3}, "each", "0", "-", "-"), "completed", "success"},
		{"the main one fails", input(managertest.Vars{"kernels": 3}, "each", "4", "-", "0"), "failed", "failure"},
		{"another fails", input(managertest.Vars{"kernels": 3}, "each", "-", "0", "5"), "failed", "failure"},
		{"another ends", input(managertest.Vars{"kernels": 2, "type": "INTERACTIVE"}, "each", "-", "0"), "completed", "success"},
	} {
		t.Run(one.name, func(t *testing.T) {
			id := c.create(t, one.in)
			s := c.over(t, id)
			if s.Status != lifecycle.Terminated || s.TerminationReason == nil || *s.TerminationReason != one.reason || s.Result != one.outcome {
				t.Errorf("%s, reason %v, %s: want %s %s\n%s", s.Status, s.TerminationReason, s.Result, one.reason, one.outcome, c.history(t, id))
			}
		})
	}
	c.check(t, true)
}

// TestKernelsStartTogether fills the cluster with a session that has a kernel on
// each agent, behind which another waits as a whole.
func TestKernelsStartTogether(t *testing.T) {
	c := newCluster(t, 2)
	ctx := c.System(t)
	cpus := c.Client.Device.Query().FirstX(ctx).Capacity["cpu"]
	for _, d := range c.Client.Device.Query().AllX(ctx) {
		cpus = max(cpus, d.Capacity["cpu"])
	}
	most := managertest.Vars{"cpu": fmt.Sprintf("%.3f", 0.6*float64(cpus)/1000), "mem": "16m"} // one fits on an agent
	in := func(kernels int) managertest.Vars {
		return input(managertest.Vars{"kernels": kernels, "slots": most}, "run")
	}
	first := c.create(t, in(2))
	c.reaches(t, first, lifecycle.Running)
	agents := map[uuid.UUID]bool{}
	names := ""
	for _, k := range c.Client.Kernel.Query().Where(kernel.SessionID(first)).Order(kernel.ByIndex()).AllX(ctx) {
		agents[*k.AgentID] = true
		names += fmt.Sprint(k.Index, k.Role, k.Hostname, " ")
	}
	if len(agents) != 2 || names != "0mainmain 1subsub1 " {
		t.Errorf("%d agents, kernels %s", len(agents), names)
	}
	second := c.create(t, in(2))
	c.waits(t, second, "")
	if n := c.Client.Kernel.Query().Where(kernel.SessionID(second), kernel.AgentIDNotNil()).CountX(ctx); n > 0 {
		t.Errorf("%d kernels of a session that waits have an agent", n)
	}
	c.end(t, first, true)
	c.reaches(t, second, lifecycle.Running)
	c.end(t, second, true)
	c.over(t, second)

	for _, one := range []struct {
		kernels      int
		field, limit string
	}{{0, "kernels", "1..29"}, {30, "kernels", "1..29"}, {5, "kernels", ""}} {
		_, errs := tryCreate(t, c.as, in(one.kernels))
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != one.field || one.limit != "" && errs[0].Extensions.Limit != one.limit {
			t.Errorf("%d kernels: %v", one.kernels, errs)
		}
	}
	c.check(t, true)
}
