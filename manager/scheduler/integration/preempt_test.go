package integration

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// part returns the slots of a percentage of an agent's processors.
func part(t *testing.T, c *clustertest.Cluster, percent int64) managertest.Vars {
	t.Helper()
	var most int64
	for _, d := range c.Client.Agent.Query().Where(entagent.Name("a")).QueryDevices().AllX(c.System(t)) {
		most += d.Capacity[resource.CPU]
	}
	return managertest.Vars{"cpu": resource.Format(resource.CPU, most*percent/100), "mem": "16m"}
}

// idle creates a session that runs until it is ended.
func idle(t *testing.T, c *clustertest.Cluster, percent int64, more managertest.Vars) managertest.Vars {
	in := managertest.Vars{"slots": part(t, c, percent)}
	for k, v := range more {
		in[k] = v
	}
	return clustertest.SessionInput(in, "sleep", "600")
}

// decide creates and ends small sessions. The scheduler decides about each one after all earlier
// sessions.
func decide(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	for range 2 {
		small := c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.001", "mem": "1m"}}, "sleep", "600"))
		c.WaitFor(t, small, lifecycle.Running)
		c.Terminate(t, small, true)
		c.WaitForEnd(t, small)
	}
}

func TestSessionMakesRoom(t *testing.T) {
	c := clustertest.New(t, 2)
	c.UpdateGroup(t, managertest.Vars{"preemption": "TERMINATE", "preemptionAfter": 0})
	victims := []uuid.UUID{}
	for range 2 {
		id := c.Create(t, idle(t, c, 60, managertest.Vars{"preemptible": true, "priority": 1}))
		c.WaitFor(t, id, lifecycle.Running)
		victims = append(victims, id)
	}
	stays := c.Create(t, idle(t, c, 20, managertest.Vars{"priority": 1}))
	c.WaitFor(t, stays, lifecycle.Running)
	urgent := c.Create(t, idle(t, c, 60, managertest.Vars{"priority": 50, "name": "urgent"}))
	c.WaitFor(t, urgent, lifecycle.Running)
	ended := 0
	for _, id := range victims {
		s := c.Session(t, id)
		if s.Status == lifecycle.Running {
			continue
		}
		ended++
		s = c.WaitForEnd(t, id)
		if s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonPreempted || s.Status != lifecycle.Terminated {
			t.Errorf("it ended: %s %v\n%s", s.Status, s.TerminationReason, c.History(t, id))
		}
		e := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.ToStatusEQ(lifecycle.Terminating)).OnlyX(c.System(t))
		if e.Code != "preempted" || !strings.Contains(e.Message, "urgent") || !strings.Contains(e.Message, "priority 50") {
			t.Errorf("history: %s %q", e.Code, e.Message)
		}
	}
	if ended != 1 {
		t.Errorf("%d sessions ended for one", ended)
	}
	if s := c.Session(t, stays); s.Status != lifecycle.Running {
		t.Errorf("the session that is not preemptible is %s", s.Status)
	}
	if e := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(urgent), sessionevent.CodeHasPrefix("waiting")).AllX(c.System(t)); len(e) > 0 && !strings.Contains(e[len(e)-1].Message, "ended for it") {
		t.Errorf("it waited as %q", e[len(e)-1].Message)
	}
	c.CheckInvariants(t, false)
}

// A preempted session runs again afterwards, and this does not count as a failed attempt.
func TestSessionMakesRoomAndComesBack(t *testing.T) {
	c := clustertest.New(t, 1)
	c.UpdateGroup(t, managertest.Vars{"preemption": "RESCHEDULE", "preemptionAfter": 0, "preemptionScope": "PROJECT", "maxAttempts": 1})
	other := c.Manager.As(t, c.A.Lead)
	victim := c.Create(t, idle(t, c, 60, managertest.Vars{"preemptible": true, "priority": 1}))
	c.WaitFor(t, victim, lifecycle.Running)
	for range 2 {
		urgent, errs := clustertest.TryCreate(t, other, idle(t, c, 60, managertest.Vars{"priority": 50, "name": "secret", "project": c.A.Project.ID}))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		c.WaitFor(t, urgent, lifecycle.Running)
		s := c.Session(t, victim)
		if s.Status != lifecycle.Pending || s.TerminationReason != nil || s.StartedAt != nil {
			t.Errorf("it is %s, for %v\n%s", s.Status, s.TerminationReason, c.History(t, victim))
		}
		for _, e := range c.Client.SessionEvent.Query().Where(sessionevent.SessionID(victim)).AllX(c.System(t)) {
			if strings.Contains(e.Message, "secret") {
				t.Errorf("the message names the owner of the other session: %q", e.Message)
			}
			if e.Code == "preempted" && e.Result != sessionevent.ResultInfo {
				t.Errorf("it counts as %s", e.Result)
			}
		}
		if errs := other.Ask(t, `mutation($id: ID!) { terminateSession(input: {id: $id, force: true}) { session { id } } }`, managertest.Vars{"id": urgent}, nil); len(errs) > 0 {
			t.Fatal(errs)
		}
		c.WaitFor(t, victim, lifecycle.Running)
	}
	c.CheckInvariants(t, false)
}

func TestNobodyEndsForNothing(t *testing.T) {
	for name, x := range map[string]struct {
		options managertest.Vars
		percent int64
	}{
		"if it is not enough":           {managertest.Vars{"preemption": "TERMINATE", "preemptionAfter": 0}, 80},
		"if it is off":                  {managertest.Vars{"preemptionAfter": 0}, 60},
		"before it has run long enough": {managertest.Vars{"preemption": "TERMINATE", "preemptionAfter": 3600}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, 1)
			c.UpdateGroup(t, x.options)
			stays := c.Create(t, idle(t, c, 30, managertest.Vars{"priority": 1}))
			victim := c.Create(t, idle(t, c, 40, managertest.Vars{"preemptible": true, "priority": 1}))
			c.WaitFor(t, stays, lifecycle.Running)
			c.WaitFor(t, victim, lifecycle.Running)
			urgent := c.Create(t, idle(t, c, x.percent, managertest.Vars{"priority": 50}))
			decide(t, c)
			if s := c.Session(t, urgent); s.Status != lifecycle.Pending {
				t.Errorf("it is %s", s.Status)
			}
			if s := c.Session(t, victim); s.Status != lifecycle.Running {
				t.Errorf("it was ended anyway:\n%s", c.History(t, victim))
			}
		})
	}
}
