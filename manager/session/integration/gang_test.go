package integration

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// TestHowSessionsOfSeveralKernelsEnd checks that a batch session ends with its main kernel or with
// one that fails, and an interactive one with any.
func TestHowSessionsOfSeveralKernelsEnd(t *testing.T) {
	c := clustertest.New(t, 2)
	for _, one := range []struct {
		name    string
		in      managertest.Vars
		reason  session.TerminationReason
		outcome session.Result
	}{
		{"all well", clustertest.SessionInput(managertest.Vars{"kernels": 3}, "each", "0", "0", "0"), "completed", "success"},
		{"the main one ends", clustertest.SessionInput(managertest.Vars{"kernels": 3}, "each", "0", "-", "-"), "completed", "success"},
		{"the main one fails", clustertest.SessionInput(managertest.Vars{"kernels": 3}, "each", "4", "-", "0"), "failed", "failure"},
		{"another fails", clustertest.SessionInput(managertest.Vars{"kernels": 3}, "each", "-", "0", "5"), "failed", "failure"},
		{"another ends", clustertest.SessionInput(managertest.Vars{"kernels": 2, "type": "INTERACTIVE"}, "each", "-", "0"), "completed", "success"},
	} {
		t.Run(one.name, func(t *testing.T) {
			id := c.Create(t, one.in)
			s := c.WaitForEnd(t, id)
			if s.Status != lifecycle.Terminated || s.TerminationReason == nil || *s.TerminationReason != one.reason || s.Result != one.outcome {
				t.Errorf("%s, reason %v, %s: want %s %s\n%s", s.Status, s.TerminationReason, s.Result, one.reason, one.outcome, c.History(t, id))
			}
		})
	}
	c.CheckInvariants(t, true)
}

// TestKernelsStartTogether fills the cluster with a session that has a kernel on each agent.
// Another such session waits behind it until all its kernels fit.
func TestKernelsStartTogether(t *testing.T) {
	c := clustertest.New(t, 2)
	ctx := c.System(t)
	cpus := c.Client.Device.Query().FirstX(ctx).Capacity["cpu"]
	for _, d := range c.Client.Device.Query().AllX(ctx) {
		cpus = max(cpus, d.Capacity["cpu"])
	}
	most := managertest.Vars{"cpu": fmt.Sprintf("%.3f", 0.6*float64(cpus)/1000), "mem": "16m"} // one fits on an agent
	in := func(kernels int) managertest.Vars {
		return clustertest.SessionInput(managertest.Vars{"kernels": kernels, "slots": most}, "run")
	}
	first := c.Create(t, in(2))
	c.WaitFor(t, first, lifecycle.Running)
	agents := map[uuid.UUID]bool{}
	names := ""
	for _, k := range c.Client.Kernel.Query().Where(kernel.SessionID(first)).Order(kernel.ByIndex()).AllX(ctx) {
		agents[*k.AgentID] = true
		names += fmt.Sprint(k.Index, k.Role, k.Hostname, " ")
	}
	if len(agents) != 2 || names != "0mainmain 1subsub1 " {
		t.Errorf("%d agents, kernels %s", len(agents), names)
	}
	second := c.Create(t, in(2))
	c.WaitForReason(t, second, "")
	if n := c.Client.Kernel.Query().Where(kernel.SessionID(second), kernel.AgentIDNotNil()).CountX(ctx); n > 0 {
		t.Errorf("%d kernels of a session that waits have an agent", n)
	}
	c.Terminate(t, first, true)
	c.WaitFor(t, second, lifecycle.Running)
	c.Terminate(t, second, true)
	c.WaitForEnd(t, second)

	for _, one := range []struct {
		kernels      int
		field, limit string
	}{{0, "kernels", "1..29"}, {30, "kernels", "1..29"}, {5, "kernels", ""}} {
		_, errs := clustertest.TryCreate(t, c.Member, in(one.kernels))
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != one.field || one.limit != "" && errs[0].Extensions.Limit != one.limit {
			t.Errorf("%d kernels: %v", one.kernels, errs)
		}
	}
	c.CheckInvariants(t, true)
}
