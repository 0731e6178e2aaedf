package integration

import (
	"testing"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// In a group with the policy fail, sessions on a lost agent fail, and its containers end when it is
// back.
func TestLostAgentFailsItsSessions(t *testing.T) {
	c := clustertest.New(t, 2)
	c.UpdateGroup(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	lost := c.NodeOf(t, id)
	lost.Stop()
	loseAgent(t, c, lost)
	if a := c.Client.Agent.Query().Where(entagent.Name(lost.Name)).OnlyX(c.System(t)); a.LostAt == nil {
		t.Error("the time of the agent's loss is missing")
	}
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Error || s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonAgentLost || s.Result != session.ResultFailure {
		t.Errorf("%s %v\n%s", s.Status, s.TerminationReason, c.History(t, id))
	}
	if c.CountContainers(t, lost) != 1 {
		t.Fatal("the container is gone already; nothing is shown")
	}
	c.Join(t, lost, c.Manager)
	c.CheckInvariants(t, true)
	if a := c.Client.Agent.Query().Where(entagent.Name(lost.Name)).OnlyX(c.System(t)); a.LostAt != nil {
		t.Errorf("an agent that is back is lost since %s", a.LostAt)
	}
}

// In a group that reschedules, the session starts again elsewhere; when the agent is back, only the
// new one of the two containers continues.
func TestLostAgentLosesItsSessionsToOthers(t *testing.T) {
	c := clustertest.New(t, 3)
	c.UpdateGroup(t, managertest.Vars{"lostPolicy": "RESCHEDULE", "lostAfter": 0})
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	lost := c.NodeOf(t, id)
	lost.Stop()
	loseAgent(t, c, lost)
	managertest.Eventually(t, "the session runs elsewhere", func() bool {
		return c.Session(t, id).Status == lifecycle.Running && c.NodeOf(t, id) != lost
	})
	now := c.NodeOf(t, id)
	s := c.Session(t, id)
	if s.TerminationReason != nil || len(s.AvoidAgents) != 1 || s.AvoidAgents[0] != c.AgentID(t, lost) {
		t.Errorf("ended for %v, avoids %v", s.TerminationReason, s.AvoidAgents)
	}
	if c.CountContainers(t, lost) != 1 {
		t.Fatal("the container is gone already; nothing is shown")
	}
	c.CheckInvariants(t, false)
	c.Join(t, lost, c.Manager)
	managertest.Eventually(t, "the stray container ends", func() bool { return c.CountContainers(t, lost) == 0 })
	if s := c.Session(t, id); s.Status != lifecycle.Running || c.NodeOf(t, id) != now || c.CountContainers(t, now) != 1 {
		t.Errorf("%s on %v\n%s", s.Status, c.NodeOf(t, id), c.History(t, id))
	}
	c.Terminate(t, id, true)
	c.WaitForEnd(t, id)
	c.CheckInvariants(t, true)
}

// A group that waits leaves its sessions as they are, until the agent is declared
// gone.
func TestAgentIsRemoved(t *testing.T) {
	c := clustertest.New(t, 2)
	super := c.Manager.As(t, c.Superadmin)
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	lost := c.NodeOf(t, id)
	remove := func() managertest.Errors {
		return super.Ask(t, `mutation($id: ID!) { deleteAgent(input: {id: $id}) { agent { status } } }`, managertest.Vars{"id": c.AgentID(t, lost)}, nil)
	}
	if errs := remove(); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("remove an agent that is alive: %s", errs)
	}
	lost.Stop()
	loseAgent(t, c, lost)
	if s := c.Session(t, id); s.Status != lifecycle.Running {
		t.Errorf("%s while its agent is disconnected", s.Status)
	}
	if errs := remove(); len(errs) > 0 {
		t.Fatal(errs)
	}
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonAgentLost {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.History(t, id))
	}
	c.Join(t, lost, c.Manager)
	c.CheckInvariants(t, true)
}

// A session that its user ends while the agent is lost ends, and blocks no other session.
func TestEndOnALostAgent(t *testing.T) {
	c := clustertest.New(t, 1)
	n := c.Nodes[0]
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	n.Stop()
	loseAgent(t, c, n)
	if errs := c.Terminate(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	c.Client.Session.UpdateOneID(id).SetDeadlineAt(c.A.CreatedAt).ExecX(c.System(t))
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Terminated || *s.TerminationReason != session.TerminationReasonUserRequested {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.History(t, id))
	}
	c.Join(t, n, c.Manager)
	c.CheckInvariants(t, true)
}

// The containers of a lost agent keep their devices after its return until they have ended: no
// session is placed on them before.
func TestStraysHoldTheirDevices(t *testing.T) {
	c := clustertest.New(t, 1)
	n := c.Nodes[0]
	ctx := c.System(t)
	c.UpdateGroup(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	mem := c.Client.Device.Query().Where(device.DeviceID("mem")).OnlyX(ctx).Capacity[resource.Mem]
	most := managertest.Vars{"cpu": "0.05", "mem": resource.Format(resource.Mem, mem/10*6)}
	in := clustertest.SessionInput(clustertest.Environment("FAKE_FAIL_REMOVE", "4"), "sleep", "600")
	in["slots"] = most
	first := c.Create(t, in)
	c.WaitFor(t, first, lifecycle.Running)
	n.Stop()
	loseAgent(t, c, n)
	c.WaitForEnd(t, first)
	second := c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": most}, "sleep", "600"))
	if c.CountContainers(t, n) != 1 {
		t.Fatal("the container is gone already; nothing is shown")
	}
	c.Join(t, n, c.Manager)
	waited := false
	managertest.Eventually(t, "the second session is placed", func() bool {
		there := c.CountContainers(t, n) // read before the session, so the count can only be too low
		placed := c.Session(t, second).Status != lifecycle.Pending
		waited = waited || !placed && there == 1
		return placed
	})
	if !waited {
		t.Error("the second session never waited for the first's container")
	}
	c.WaitFor(t, second, lifecycle.Running)
	if k := c.CountContainers(t, n); k != 1 {
		t.Errorf("%d containers", k)
	}
	if f := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(second), sessionevent.ResultEQ(sessionevent.ResultRetry),
		sessionevent.Not(sessionevent.CodeHasPrefix("waiting"))).CountX(ctx); f != 0 {
		t.Errorf("it was placed too early\n%s", c.History(t, second))
	}
	c.Terminate(t, second, true)
	c.WaitForEnd(t, second)
	c.WaitForNoDrift(t)
	c.CheckInvariants(t, true)
}
