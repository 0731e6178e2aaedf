package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
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

func (c *cluster) agentID(t *testing.T, n *node) uuid.UUID {
	t.Helper()
	return c.Client.Agent.Query().Where(entagent.Name(n.name)).OnlyIDX(c.System(t))
}

// on is the machine that a session's kernel is placed on.
func (c *cluster) on(t *testing.T, id uuid.UUID) *node {
	t.Helper()
	k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().OnlyX(c.System(t))
	for _, n := range c.nodes {
		if k.Edges.Agent != nil && k.Edges.Agent.Name == n.name {
			return n
		}
	}
	return nil
}

// told waits until the session's history has an entry with this code, and returns it.
func (c *cluster) told(t *testing.T, id uuid.UUID, code string) (message string) {
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

func (c *cluster) look(t *testing.T, as *managertest.Client, n *node) drained {
	t.Helper()
	var got struct{ Node drained }
	as.Must(t, `query($id: ID!) { node(id: $id) { ... on Agent { schedulable cordonReason drainDeadline drainAction drained sessionsLeft } } }`,
		managertest.Vars{"id": c.agentID(t, n)}, &got)
	return got.Node
}

// An agent is drained: it gets no new sessions, owners are notified of the deadline, and at the
// deadline the remaining sessions start again elsewhere, which does not count as a failure.
func TestDrainReschedules(t *testing.T) {
	c := newCluster(t, 2)
	super := c.m.As(t, c.Superadmin)
	stays := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, stays, lifecycle.Running)
	from := c.on(t, stays)
	to := c.nodes[0]
	if to == from {
		to = c.nodes[1]
	}
	var got struct{ DrainAgent struct{ Agent drained } }
	in := managertest.Vars{"id": c.agentID(t, from), "after": 3600, "action": "RESCHEDULE", "reason": "disk replacement"}
	super.Must(t, drainAgent, managertest.Vars{"in": in}, &got)
	if a := got.DrainAgent.Agent; a.Schedulable || a.CordonReason != "disk replacement" || a.DrainDeadline == nil || a.Drained || a.SessionsLeft != 1 {
		t.Errorf("%+v", a)
	}
	if text := c.told(t, stays, "draining"); !strings.Contains(text, "disk replacement") || !strings.Contains(text, got.DrainAgent.Agent.DrainDeadline.UTC().Format("15:04:05")) {
		t.Errorf("the owner is told: %s", text)
	}
	if s := c.session(t, stays); s.Status != lifecycle.Running || !strings.Contains(s.StatusMessage, "drained") {
		t.Errorf("%s: %s", s.Status, s.StatusMessage)
	}
	for range 3 { // nothing new lands
		id := c.create(t, input(nil, "sleep", "600"))
		c.reaches(t, id, lifecycle.Running)
		if on := c.on(t, id); on != to {
			t.Errorf("a new session lands on %s, which is drained", on.name)
		}
		c.end(t, id, true)
		c.over(t, id)
	}
	// The pending reason says so, too.
	c.Client.Agent.Update().Where(entagent.Name(to.name)).SetSchedulable(false).SetCordonReason("new cables").ExecX(c.System(t))
	waits := c.create(t, input(nil, "exit", "0"))
	managertest.Eventually(t, "it says why it waits", func() bool {
		p := c.session(t, waits).Pending
		return p != nil && strings.Contains(p.Summary, "draining (disk replacement)") && strings.Contains(p.Summary, "cordoned (new cables)")
	})
	c.Client.Agent.Update().Where(entagent.Name(to.name)).SetSchedulable(true).SetCordonReason("").ExecX(c.System(t))
	c.over(t, waits)
	// It is in a hurry now.
	in["after"] = 0
	super.Must(t, drainAgent, managertest.Vars{"in": in}, nil)
	managertest.Eventually(t, "the session runs elsewhere", func() bool {
		return c.session(t, stays).Status == lifecycle.Running && c.on(t, stays) == to
	})
	managertest.Eventually(t, "the agent is drained", func() bool { return c.look(t, super, from).Drained })
	if n := c.containers(t, from); n != 0 {
		t.Errorf("%d containers are left on the drained agent", n)
	}
	s := c.session(t, stays)
	if len(s.AvoidAgents) != 1 || s.AvoidAgents[0] != c.agentID(t, from) || s.TerminationReason != nil {
		t.Errorf("it avoids %v, ended for %v", s.AvoidAgents, s.TerminationReason)
	}
	if n := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(stays), sessionevent.ResultEQ(sessionevent.ResultRetry),
		sessionevent.CodeNEQ("waiting")).CountX(c.System(t)); n != 0 {
		t.Errorf("%d failures\n%s", n, c.history(t, stays))
	}
	errs := super.Ask(t, `mutation($in: UpdateAgentInput!) { updateAgent(input: $in) { agent { id } } }`,
		managertest.Vars{"in": managertest.Vars{"id": c.agentID(t, from), "schedulable": true}}, nil)
	if errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("uncordon a drained agent: %s", errs)
	}
	undrain := `mutation($id: ID!) { undrainAgent(input: {id: $id}) { agent { schedulable drained drainAction } } }`
	super.Must(t, undrain, managertest.Vars{"id": c.agentID(t, from)}, nil)
	if a := c.look(t, super, from); !a.Schedulable || a.Drained || a.DrainDeadline != nil || a.CordonReason != "" {
		t.Errorf("%+v", a)
	}
	c.end(t, stays, true)
	c.over(t, stays)
	c.check(t, true)
}

func TestDrainTerminates(t *testing.T) {
	c := newCluster(t, 1)
	n := c.nodes[0]
	super := c.m.As(t, c.Superadmin)
	batch := c.create(t, input(nil, "sleep", "600"))
	interactive := c.create(t, input(managertest.Vars{"type": "INTERACTIVE"}))
	for _, id := range []uuid.UUID{batch, interactive} {
		c.reaches(t, id, lifecycle.Running)
	}
	in := managertest.Vars{"id": c.agentID(t, n), "after": 600, "action": "TERMINATE"}
	super.Must(t, drainAgent, managertest.Vars{"in": in}, nil)
	c.told(t, batch, "draining")
	c.told(t, interactive, "draining")
	// A drain that is cancelled is withdrawn from the sessions.
	super.Must(t, `mutation($id: ID!) { undrainAgent(input: {id: $id}) { agent { id } } }`, managertest.Vars{"id": in["id"]}, nil)
	c.told(t, batch, "drain_ended")
	in["after"] = 1
	super.Must(t, drainAgent, managertest.Vars{"in": in}, nil)
	for _, id := range []uuid.UUID{batch, interactive} {
		if s := c.over(t, id); s.Status != lifecycle.Terminated || s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonDrained {
			t.Errorf("%s %v\n%s", s.Status, s.TerminationReason, c.history(t, id))
		}
	}
	managertest.Eventually(t, "the agent is drained", func() bool { return c.look(t, super, n).Drained })
	c.check(t, true)
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

// A user ends a session that the platform would start again: it stays ended.
func TestUserEndsWhatIsRescheduled(t *testing.T) {
	c := newCluster(t, 1)
	super := c.m.As(t, c.Superadmin)
	id := c.create(t, input(nil, "ignore-term"))
	c.reaches(t, id, lifecycle.Running)
	super.Must(t, drainAgent, managertest.Vars{"in": managertest.Vars{"id": c.agentID(t, c.nodes[0]), "after": 0, "action": "RESCHEDULE"}}, nil)
	c.reaches(t, id, lifecycle.Terminating)
	if errs := c.end(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	if s := c.over(t, id); s.Status != lifecycle.Terminated || *s.TerminationReason != session.TerminationReasonUserRequested {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.history(t, id))
	}
	c.check(t, true)
}
