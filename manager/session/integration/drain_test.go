package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const drainAgent = `mutation($in: DrainAgentInput!) { drainAgent(input: $in) { agent { schedulable cordonReason drainDeadline drainAction drained sessionsLeft } } }`

type drained struct {
	Schedulable   bool
	CordonReason  string
	DrainDeadline *time.Time
	DrainAction   string
	Drained       bool
	SessionsLeft  int
}

// told waits until the history of the session has an entry with this code, and returns the entry.
func told(t *testing.T, c *clustertest.Cluster, id uuid.UUID, code string) (message string) {
	t.Helper()
	managertest.Eventually(t, "the history says "+code, func() bool {
		e, err := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.Code(code)).First(c.System(t))
		if err == nil {
			message = e.Message
		}
		return err == nil
	})
	return message
}

func look(t *testing.T, c *clustertest.Cluster, as *managertest.Client, n *clustertest.Node) drained {
	t.Helper()
	var got struct{ Node drained }
	as.Must(t, `query($id: ID!) { node(id: $id) { ... on Agent { schedulable cordonReason drainDeadline drainAction drained sessionsLeft } } }`,
		managertest.Vars{"id": c.AgentID(t, n)}, &got)
	return got.Node
}

// An agent is drained: it gets no new sessions, owners are notified of the deadline, and at the
// deadline the remaining sessions start again elsewhere, which does not count as a failure.
func TestDrainReschedules(t *testing.T) {
	c := clustertest.New(t, 2)
	super := c.Manager.As(t, c.Superadmin)
	stays := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, stays, lifecycle.Running)
	from := c.NodeOf(t, stays)
	to := c.Nodes[0]
	if to == from {
		to = c.Nodes[1]
	}
	var got struct{ DrainAgent struct{ Agent drained } }
	in := managertest.Vars{"id": c.AgentID(t, from), "after": 3600, "action": "RESCHEDULE", "reason": "disk replacement"}
	super.Must(t, drainAgent, managertest.Vars{"in": in}, &got)
	if a := got.DrainAgent.Agent; a.Schedulable || a.CordonReason != "disk replacement" || a.DrainDeadline == nil || a.Drained || a.SessionsLeft != 1 {
		t.Errorf("%+v", a)
	}
	if text := told(t, c, stays, "draining"); !strings.Contains(text, "disk replacement") || !strings.Contains(text, got.DrainAgent.Agent.DrainDeadline.UTC().Format("15:04:05")) {
		t.Errorf("the owner is told: %s", text)
	}
	if s := c.Session(t, stays); s.Status != lifecycle.Running || !strings.Contains(s.StatusMessage, "drained") {
		t.Errorf("%s: %s", s.Status, s.StatusMessage)
	}
	for range 3 { // no new session is placed on it
		id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
		c.WaitFor(t, id, lifecycle.Running)
		if on := c.NodeOf(t, id); on != to {
			t.Errorf("a new session lands on %s, which is drained", on.Name)
		}
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
	}
	// The pending reason says so, too.
	c.Client.Agent.Update().Where(entagent.Name(to.Name)).SetSchedulable(false).SetCordonReason("new cables").ExecX(c.System(t))
	waits := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	managertest.Eventually(t, "it says why it waits", func() bool {
		p := c.Session(t, waits).Pending
		return p != nil && strings.Contains(p.Summary, "draining (disk replacement)") && strings.Contains(p.Summary, "cordoned (new cables)")
	})
	c.Client.Agent.Update().Where(entagent.Name(to.Name)).SetSchedulable(true).SetCordonReason("").ExecX(c.System(t))
	c.WaitForEnd(t, waits)
	// The deadline of the drain is now.
	in["after"] = 0
	super.Must(t, drainAgent, managertest.Vars{"in": in}, nil)
	managertest.Eventually(t, "the session runs elsewhere", func() bool {
		return c.Session(t, stays).Status == lifecycle.Running && c.NodeOf(t, stays) == to
	})
	managertest.Eventually(t, "the agent is drained", func() bool { return look(t, c, super, from).Drained })
	if n := c.CountContainers(t, from); n != 0 {
		t.Errorf("%d containers are left on the drained agent", n)
	}
	s := c.Session(t, stays)
	if len(s.AvoidAgents) != 1 || s.AvoidAgents[0] != c.AgentID(t, from) || s.TerminationReason != nil {
		t.Errorf("it avoids %v, ended for %v", s.AvoidAgents, s.TerminationReason)
	}
	if n := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(stays), sessionevent.ResultEQ(sessionevent.ResultRetry),
		sessionevent.Not(sessionevent.CodeHasPrefix("waiting"))).CountX(c.System(t)); n != 0 {
		t.Errorf("%d failures\n%s", n, c.History(t, stays))
	}
	errs := super.Ask(t, `mutation($in: UpdateAgentInput!) { updateAgent(input: $in) { agent { id } } }`,
		managertest.Vars{"in": managertest.Vars{"id": c.AgentID(t, from), "schedulable": true}}, nil)
	if errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("uncordon a drained agent: %s", errs)
	}
	undrain := `mutation($id: ID!) { undrainAgent(input: {id: $id}) { agent { schedulable drained drainAction } } }`
	super.Must(t, undrain, managertest.Vars{"id": c.AgentID(t, from)}, nil)
	if a := look(t, c, super, from); !a.Schedulable || a.Drained || a.DrainDeadline != nil || a.CordonReason != "" {
		t.Errorf("%+v", a)
	}
	c.Terminate(t, stays, true)
	c.WaitForEnd(t, stays)
	c.CheckInvariants(t, true)
}

func TestDrainTerminates(t *testing.T) {
	c := clustertest.New(t, 1)
	n := c.Nodes[0]
	super := c.Manager.As(t, c.Superadmin)
	batch := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	interactive := c.Create(t, clustertest.SessionInput(managertest.Vars{"type": "INTERACTIVE"}))
	for _, id := range []uuid.UUID{batch, interactive} {
		c.WaitFor(t, id, lifecycle.Running)
	}
	in := managertest.Vars{"id": c.AgentID(t, n), "after": 600, "action": "TERMINATE"}
	super.Must(t, drainAgent, managertest.Vars{"in": in}, nil)
	told(t, c, batch, "draining")
	told(t, c, interactive, "draining")
	// When a drain is cancelled, the notice is withdrawn from the sessions.
	super.Must(t, `mutation($id: ID!) { undrainAgent(input: {id: $id}) { agent { id } } }`, managertest.Vars{"id": in["id"]}, nil)
	told(t, c, batch, "drain_ended")
	in["after"] = 1
	super.Must(t, drainAgent, managertest.Vars{"in": in}, nil)
	for _, id := range []uuid.UUID{batch, interactive} {
		if s := c.WaitForEnd(t, id); s.Status != lifecycle.Terminated || s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonDrained {
			t.Errorf("%s %v\n%s", s.Status, s.TerminationReason, c.History(t, id))
		}
	}
	managertest.Eventually(t, "the agent is drained", func() bool { return look(t, c, super, n).Drained })
	c.CheckInvariants(t, true)
	for _, bad := range []struct {
		in          managertest.Vars
		code, field string
	}{
		{managertest.Vars{"after": -1}, "INVALID_ARGUMENT", "after"},
		{managertest.Vars{"after": 2592001}, "INVALID_ARGUMENT", "after"},
		{managertest.Vars{}, "INVALID_ARGUMENT", "deadline"},
		{managertest.Vars{"after": 1, "deadline": time.Now().Add(time.Hour)}, "INVALID_ARGUMENT", "deadline"},
		{managertest.Vars{"deadline": time.Now().Add(-time.Hour)}, "INVALID_ARGUMENT", "deadline"},
		{managertest.Vars{"after": 1, "reason": strings.Repeat("x", 201)}, "INVALID_ARGUMENT", "reason"},
	} {
		bad.in["id"], bad.in["action"] = in["id"], "TERMINATE"
		if errs := super.Ask(t, drainAgent, managertest.Vars{"in": bad.in}, nil); errs.Code() != bad.code || errs[0].Extensions.Field != bad.field {
			t.Errorf("%v: %s", bad.in, errs)
		}
	}
}

// A user ends a session that the platform would start again. The session stays ended.
func TestUserEndsWhatIsRescheduled(t *testing.T) {
	c := clustertest.New(t, 1)
	super := c.Manager.As(t, c.Superadmin)
	id := c.Create(t, clustertest.SessionInput(nil, "ignore-term"))
	c.WaitFor(t, id, lifecycle.Running)
	super.Must(t, drainAgent, managertest.Vars{"in": managertest.Vars{"id": c.AgentID(t, c.Nodes[0]), "after": 0, "action": "RESCHEDULE"}}, nil)
	c.WaitFor(t, id, lifecycle.Terminating)
	if errs := c.Terminate(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Terminated || *s.TerminationReason != session.TerminationReasonUserRequested {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.History(t, id))
	}
	c.CheckInvariants(t, true)
}
