package manager_test

import (
	"testing"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// set changes options of the group.
func (c *cluster) set(t *testing.T, options managertest.Vars) {
	t.Helper()
	options["id"] = c.Group.ID
	c.m.As(t, c.Superadmin).Must(t, `mutation($in: UpdateResourceGroupInput!) { updateResourceGroup(input: $in) { resourceGroup { id } } }`,
		managertest.Vars{"in": options}, nil)
}

// A group that fails what runs on lost agents ends it there, and the agent's
// containers when it is back.
func TestLostAgentFailsItsSessions(t *testing.T) {
	c := newCluster(t, 2)
	c.set(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	id := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, id, lifecycle.Running)
	lost := c.on(t, id)
	lost.stop()
	c.loseAgent(t, lost)
	if a := c.Client.Agent.Query().Where(entagent.Name(lost.name)).OnlyX(c.System(t)); a.LostAt == nil {
		t.Error("it is not told since when the agent is lost")
	}
	if s := c.over(t, id); s.Status != lifecycle.Error || s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonAgentLost || s.Result != session.ResultFailure {
		t.Errorf("%s %v\n%s", s.Status, s.TerminationReason, c.history(t, id))
	}
	if c.containers(t, lost) != 1 {
		t.Fatal("the container is gone already; nothing is shown")
	}
	c.join(t, lost, c.m)
	c.check(t, true)
	if a := c.Client.Agent.Query().Where(entagent.Name(lost.name)).OnlyX(c.System(t)); a.LostAt != nil {
		t.Errorf("an agent that is back is lost since %s", a.LostAt)
	}
}

// A group that reschedules starts the session again elsewhere; of the two
// containers only the new one continues when the agent is back.
func TestLostAgentLosesItsSessionsToOthers(t *testing.T) {
	c := newCluster(t, 3)
	c.set(t, managertest.Vars{"lostPolicy": "RESCHEDULE", "lostAfter": 0})
	id := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, id, lifecycle.Running)
	lost := c.on(t, id)
	lost.stop()
	c.loseAgent(t, lost)
	managertest.Eventually(t, "the session runs elsewhere", func() bool {
		return c.session(t, id).Status == lifecycle.Running && c.on(t, id) != lost
	})
	now := c.on(t, id)
	s := c.session(t, id)
	if s.TerminationReason != nil || len(s.AvoidAgents) != 1 || s.AvoidAgents[0] != c.agentID(t, lost) {
		t.Errorf("ended for %v, avoids %v", s.TerminationReason, s.AvoidAgents)
	}
	if c.containers(t, lost) != 1 {
		t.Fatal("the container is gone already; nothing is shown")
	}
	c.check(t, false)
	c.join(t, lost, c.m)
	managertest.Eventually(t, "the stray container ends", func() bool { return c.containers(t, lost) == 0 })
	if s := c.session(t, id); s.Status != lifecycle.Running || c.on(t, id) != now || c.containers(t, now) != 1 {
		t.Errorf("%s on %v\n%s", s.Status, c.on(t, id), c.history(t, id))
	}
	c.end(t, id, true)
	c.over(t, id)
	c.check(t, true)
}

// A group that waits leaves its sessions as they are, until the agent is declared
// gone.
func TestAgentIsRemoved(t *testing.T) {
	c := newCluster(t, 2)
	super := c.m.As(t, c.Superadmin)
	id := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, id, lifecycle.Running)
	lost := c.on(t, id)
	remove := func() managertest.Errors {
		return super.Ask(t, `mutation($id: ID!) { deleteAgent(input: {id: $id}) { agent { status } } }`, managertest.Vars{"id": c.agentID(t, lost)}, nil)
	}
	if errs := remove(); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("remove an agent that is alive: %s", errs)
	}
	lost.stop()
	c.loseAgent(t, lost)
	if s := c.session(t, id); s.Status != lifecycle.Running {
		t.Errorf("%s while its agent is away", s.Status)
	}
	if errs := remove(); len(errs) > 0 {
		t.Fatal(errs)
	}
	if s := c.over(t, id); s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonAgentLost {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.history(t, id))
	}
	c.join(t, lost, c.m)
	c.check(t, true)
}

// What its user ends while the agent is away comes to an end, and holds no one up.
func TestEndOnALostAgent(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	id := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, id, lifecycle.Running)
	n.stop()
	c.loseAgent(t, n)
	if errs := c.end(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	c.Client.Session.UpdateOneID(id).SetDeadlineAt(c.A.CreatedAt).ExecX(c.System(t))
	if s := c.over(t, id); s.Status != lifecycle.Terminated || *s.TerminationReason != session.TerminationReasonUserRequested {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.history(t, id))
	}
	c.join(t, n, c.m)
	c.check(t, true)
}

// What a lost agent still has when it is back holds its devices until it has
// ended: nothing lands on them before.
func TestStraysHoldTheirDevices(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	ctx := c.System(t)
	c.set(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	mem := c.Client.Device.Query().Where(device.DeviceID("mem")).OnlyX(ctx).Capacity[resource.Mem]
	most := managertest.Vars{"cpu": "0.05", "mem": resource.Format(resource.Mem, mem/10*6)}
	in := input(env("FAKE_FAIL_REMOVE", "4"), "sleep", "600")
	in["slots"] = most
	first := c.create(t, in)
	c.reaches(t, first, lifecycle.Running)
	n.stop()
	c.loseAgent(t, n)
	c.over(t, first)
	second := c.create(t, input(managertest.Vars{"slots": most}, "sleep", "600"))
	if c.containers(t, n) != 1 {
		t.Fatal("the container is gone already; nothing is shown")
	}
	c.join(t, n, c.m)
	waited := false
	managertest.Eventually(t, "the second session is placed", func() bool {
		there := c.containers(t, n) // looked at before the session, so that it can only be too few
		placed := c.session(t, second).Status != lifecycle.Pending
		waited = waited || !placed && there == 1
		return placed
	})
	if !waited {
		t.Error("the second session never waited for the first's container")
	}
	c.reaches(t, second, lifecycle.Running)
	if k := c.containers(t, n); k != 1 {
		t.Errorf("%d containers", k)
	}
	if f := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(second), sessionevent.ResultEQ(sessionevent.ResultRetry),
		sessionevent.CodeNEQ("waiting")).CountX(ctx); f != 0 {
		t.Errorf("it was placed too early\n%s", c.history(t, second))
	}
	c.end(t, second, true)
	c.over(t, second)
	c.noDrift(t)
	c.check(t, true)
}

// The attempts of a group bound the attempts, each goes to another agent, and
// what was tried is in the history.
func TestAttemptsOfAGroup(t *testing.T) {
	c := newCluster(t, 3)
	c.set(t, managertest.Vars{"maxAttempts": 2})
	id := c.create(t, input(env("FAKE_FAIL_CREATE", "no space"), "sleep", "600"))
	s := c.over(t, id)
	if s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonStartFailed || s.StatusMessage != "no space: internal (attempt 2 of 2)" {
		t.Errorf("%s %v: %s\n%s", s.Status, *s.TerminationReason, s.StatusMessage, c.history(t, id))
	}
	if n := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.ToStatusEQ(lifecycle.Scheduled)).CountX(c.System(t)); n != 2 {
		t.Errorf("%d attempts\n%s", n, c.history(t, id))
	}
	seen := map[uuid.UUID]bool{}
	for _, a := range c.Client.Session.GetX(c.System(t), id).QueryKernels().QueryAllocations().AllX(c.System(t)) {
		seen[a.AgentID] = true
	}
	if len(seen) != 2 {
		t.Errorf("it was tried on %d agents, want the second time on another one", len(seen))
	}
	c.check(t, true)
}

// A group bounds how long a session waits, from when it could first start.
func TestPendingTimeout(t *testing.T) {
	c := newCluster(t, 1)
	blocker := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, blocker, lifecycle.Running)
	c.Client.Agent.Update().SetSchedulable(false).ExecX(c.System(t))
	c.set(t, managertest.Vars{"pendingTimeout": 1})
	after := c.create(t, input(managertest.Vars{"dependsOn": []uuid.UUID{blocker}}, "exit", "0"))
	id := c.create(t, input(nil, "exit", "0"))
	if s := c.over(t, id); s.Status != lifecycle.Cancelled || *s.TerminationReason != session.TerminationReasonPendingTimeout {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.history(t, id))
	}
	c.told(t, id, "pending_timeout")
	if s := c.session(t, after); s.Status != lifecycle.Pending {
		t.Errorf("what could not start yet is %s", s.Status)
	}
	for _, bad := range []managertest.Vars{{"pendingTimeout": -1}, {"lostAfter": 2592001}, {"maxAttempts": 0}, {"maxAttempts": 101}} {
		for field := range bad {
			bad["id"] = c.Group.ID
			errs := c.m.As(t, c.Superadmin).Ask(t, `mutation($in: UpdateResourceGroupInput!) { updateResourceGroup(input: $in) { resourceGroup { id } } }`,
				managertest.Vars{"in": bad}, nil)
			if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != field || errs[0].Extensions.Limit == "" {
				t.Errorf("%v: %s", bad, errs)
			}
			break
		}
	}
	c.end(t, blocker, true)
	c.over(t, blocker)
	if s := c.over(t, after); *s.TerminationReason != session.TerminationReasonDependencyFailed {
		t.Errorf("%v", *s.TerminationReason)
	}
	c.check(t, true)
}
