package integration

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// The group limits the number of attempts. Each attempt is on another agent, and all attempts are
// in the history.
func TestAttemptsOfAGroup(t *testing.T) {
	c := clustertest.New(t, 3)
	c.UpdateGroup(t, managertest.Vars{"maxAttempts": 2})
	id := c.Create(t, clustertest.SessionInput(clustertest.Environment("FAKE_FAIL_CREATE", "no space"), "sleep", "600"))
	s := c.WaitForEnd(t, id)
	if s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonStartFailed || s.StatusMessage != "no space: internal (attempt 2 of 2)" {
		t.Errorf("%s %v: %s\n%s", s.Status, *s.TerminationReason, s.StatusMessage, c.History(t, id))
	}
	if n := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.ToStatusEQ(lifecycle.Scheduled)).CountX(c.System(t)); n != 2 {
		t.Errorf("%d attempts\n%s", n, c.History(t, id))
	}
	seen := map[uuid.UUID]bool{}
	for _, a := range c.Client.Session.GetX(c.System(t), id).QueryKernels().QueryAllocations().AllX(c.System(t)) {
		seen[a.AgentID] = true
	}
	if len(seen) != 2 {
		t.Errorf("it was tried on %d agents, want the second time on another one", len(seen))
	}
	c.CheckInvariants(t, true)
}

// A group limits how long a session waits, from the time at which it could first start.
func TestPendingTimeout(t *testing.T) {
	c := clustertest.New(t, 1)
	blocker := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, blocker, lifecycle.Running)
	c.Client.Agent.Update().SetSchedulable(false).ExecX(c.System(t))
	c.UpdateGroup(t, managertest.Vars{"pendingTimeout": 1})
	after := c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{blocker}}, "exit", "0"))
	id := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Cancelled || *s.TerminationReason != session.TerminationReasonPendingTimeout {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.History(t, id))
	}
	told(t, c, id, "pending_timeout")
	if s := c.Session(t, after); s.Status != lifecycle.Pending {
		t.Errorf("what could not start yet is %s", s.Status)
	}
	for _, bad := range []managertest.Vars{{"pendingTimeout": -1}, {"lostAfter": 2592001}, {"maxAttempts": 0}, {"maxAttempts": 101}} {
		for field := range bad {
			bad["id"] = c.Group.ID
			errs := c.Manager.As(t, c.Superadmin).Ask(t, `mutation($in: UpdateResourceGroupInput!) { updateResourceGroup(input: $in) { resourceGroup { id } } }`,
				managertest.Vars{"in": bad}, nil)
			if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != field || errs[0].Extensions.Limit == "" {
				t.Errorf("%v: %s", bad, errs)
			}
			break
		}
	}
	c.Terminate(t, blocker, true)
	c.WaitForEnd(t, blocker)
	if s := c.WaitForEnd(t, after); *s.TerminationReason != session.TerminationReasonDependencyFailed {
		t.Errorf("%v", *s.TerminationReason)
	}
	c.CheckInvariants(t, true)
}
