package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

func TestSessionStartsAtItsTime(t *testing.T) {
	c := clustertest.New(t, 1)
	at := time.Now().Add(15 * time.Second).UTC() // the session was seen waiting before
	id := c.Create(t, clustertest.SessionInput(managertest.Vars{"startsAt": at}, "exit", "0"))
	c.WaitForReason(t, id, "It starts at "+at.Format(time.RFC3339))
	s := c.WaitForEnd(t, id)
	if s.Result != session.ResultSuccess || s.StartedAt == nil || s.StartedAt.Before(at) {
		t.Errorf("%s, started at %v, asked for %v\n%s", s.Result, s.StartedAt, at, c.History(t, id))
	}
	for _, one := range []struct {
		name  string
		in    managertest.Vars
		limit bool
	}{
		{"the past", clustertest.SessionInput(managertest.Vars{"startsAt": time.Now().Add(-time.Minute)}, "exit", "0"), true},
		{"too far ahead", clustertest.SessionInput(managertest.Vars{"startsAt": time.Now().AddDate(1, 0, 2)}, "exit", "0"), true},
		{"an interactive session", clustertest.SessionInput(managertest.Vars{"startsAt": time.Now().Add(time.Hour)}), false},
	} {
		_, errs := clustertest.TryCreate(t, c.Member, one.in)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "startsAt" || (errs[0].Extensions.Limit != "") != one.limit {
			t.Errorf("%s: %s", one.name, errs)
		}
	}
	c.CheckInvariants(t, true)
}

func TestSessionsStartAfterOthers(t *testing.T) {
	c := clustertest.New(t, 1)
	first := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	second := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	after := c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{first, second}}, "exit", "0"))
	last := c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{after}}, "exit", "0"))
	c.WaitForReason(t, after, "after session "+c.Session(t, first).Name) // the other is over
	c.WaitForReason(t, last, "after session "+c.Session(t, after).Name)

	type dependency struct {
		Name            string
		Satisfied       bool
		Session, Needed *struct{ ID uuid.UUID }
	}
	var got struct {
		Node struct{ DependsOn, Dependents []dependency }
	}
	c.Member.Must(t, `query($id: ID!) { node(id: $id) { ... on Session {
		dependsOn { name satisfied needed { id } session { id } } dependents { session { id } }
	} } }`, managertest.Vars{"id": after}, &got)
	var needed []uuid.UUID
	for _, d := range got.Node.DependsOn {
		needed = append(needed, d.Needed.ID)
		if d.Satisfied != (d.Needed.ID == second) || d.Session.ID != after {
			t.Errorf("%+v", d)
		}
	}
	if len(needed) != 2 || !slices.Contains(needed, first) || len(got.Node.Dependents) != 1 || got.Node.Dependents[0].Session.ID != last {
		t.Errorf("%+v", got.Node)
	}

	// The first session is ended: the sessions that depend on it are cancelled, to the end of the
	// chain.
	if errs := c.Terminate(t, first, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	for id, on := range map[uuid.UUID]uuid.UUID{after: first, last: after} {
		s := c.WaitForEnd(t, id)
		if s.Status != lifecycle.Cancelled || s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonDependencyFailed ||
			!strings.Contains(s.StatusMessage, c.Session(t, on).Name) {
			t.Errorf("%s %v %q\n%s", s.Status, s.TerminationReason, s.StatusMessage, c.History(t, id))
		}
	}

	// A success releases the next session, and a dependency that has succeeded already delays
	// nothing.
	good := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	next := c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{good}}, "exit", "0"))
	if s := c.WaitForEnd(t, next); s.Result != session.ResultSuccess || s.StartedAt.Before(*c.Session(t, good).TerminatedAt) {
		t.Errorf("%s: %s\n%s", s.Status, s.StatusMessage, c.History(t, next))
	}
	if s := c.WaitForEnd(t, c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{good}}, "exit", "0"))); s.Result != session.ResultSuccess {
		t.Errorf("%s: %s", s.Status, s.StatusMessage)
	}
	c.CheckInvariants(t, true)
}

// A manager that was not running at that time finds the remaining work.
func TestDependenciesOutliveTheLeader(t *testing.T) {
	c := clustertest.New(t, 1)
	needed := c.Create(t, clustertest.SessionInput(managertest.Vars{"startsAt": time.Now().Add(time.Hour)}, "exit", "0"))
	gone := c.Create(t, clustertest.SessionInput(managertest.Vars{"startsAt": time.Now().Add(time.Hour)}, "exit", "0"))
	after := c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{needed}}, "exit", "0"))
	orphan := c.Create(t, clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{gone}}, "exit", "0"))
	c.WaitForReason(t, after, "It starts after")
	c.WaitForReason(t, orphan, "It starts after")
	c.Manager.Stop()
	ctx := c.System(t)
	c.Client.Session.UpdateOneID(needed).SetStatus(lifecycle.Error).SetResult("failure").SetTerminatedAt(time.Now()).ExecX(ctx)
	for _, k := range c.Client.Session.GetX(ctx, gone).QueryKernels().AllX(ctx) {
		c.Client.Kernel.DeleteOne(k).ExecX(ctx)
	}
	for _, e := range c.Client.Session.GetX(ctx, gone).QueryHistory().AllX(ctx) {
		c.Client.SessionEvent.DeleteOne(e).ExecX(ctx)
	}
	c.Client.Session.DeleteOneID(gone).ExecX(ctx)
	c.Start(t)
	for id, how := range map[uuid.UUID]string{after: "did not succeed", orphan: "is gone"} {
		if s := c.WaitForEnd(t, id); s.Status != lifecycle.Cancelled || !strings.Contains(s.StatusMessage, how) {
			t.Errorf("%s: %s, want %q", s.Status, s.StatusMessage, how)
		}
	}
}

func TestWhatNobodyCanStartAfter(t *testing.T) {
	c := clustertest.New(t, 1)
	failed := c.Create(t, clustertest.SessionInput(nil, "exit", "1"))
	c.WaitForEnd(t, failed)
	live := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	many := make([]uuid.UUID, 33)
	for i := range many {
		many[i] = uuid.New()
	}
	other := c.Manager.As(t, c.B.Member)
	for _, one := range []struct {
		name        string
		as          *managertest.Client
		on          []uuid.UUID
		code, field string
	}{
		{"one that failed", c.Member, []uuid.UUID{failed}, "FAILED_PRECONDITION", "dependsOn[0]"},
		{"one twice", c.Member, []uuid.UUID{live, live}, "INVALID_ARGUMENT", "dependsOn[1]"},
		{"one that is not there", c.Member, []uuid.UUID{uuid.New()}, "NOT_FOUND", "dependsOn[0]"},
		{"one out of sight", other, []uuid.UUID{live}, "NOT_FOUND", "dependsOn[0]"},
		{"too many", c.Member, many, "INVALID_ARGUMENT", "dependsOn"},
	} {
		if _, errs := clustertest.TryCreate(t, one.as, clustertest.SessionInput(managertest.Vars{"dependsOn": one.on}, "exit", "0")); errs.Code() != one.code || errs[0].Extensions.Field != one.field {
			t.Errorf("%s: %s", one.name, errs)
		}
	}
}

func TestDesignatedAgents(t *testing.T) {
	c := clustertest.New(t, 2)
	ctx := c.System(t)
	a, b := c.Client.Agent.Query().Where(agent.Name("a")).OnlyIDX(ctx), c.Client.Agent.Query().Where(agent.Name("b")).OnlyIDX(ctx)
	on := func(change managertest.Vars) managertest.Vars {
		return clustertest.SessionInput(change, "sleep", "600")
	}
	where := func(id uuid.UUID) uuid.UUID {
		c.WaitFor(t, id, lifecycle.Running)
		return *c.Client.Session.GetX(ctx, id).QueryKernels().OnlyX(ctx).AgentID
	}
	for _, want := range []uuid.UUID{a, b, a, b} {
		if got := where(c.Create(t, on(managertest.Vars{"agents": []uuid.UUID{want}}))); got != want {
			t.Errorf("runs on %s, asked for %s", got, want)
		}
	}
	// Only users who can change agents can restrict a session to them.
	if _, errs := clustertest.TryCreate(t, c.Member, on(managertest.Vars{"agents": []uuid.UUID{b}, "strictAgents": true})); errs.Code() != "PERMISSION_DENIED" || errs[0].Extensions.Field != "strictAgents" {
		t.Errorf("strict as a member: %s", errs)
	}
	if _, errs := clustertest.TryCreate(t, c.Member, on(managertest.Vars{"agents": []uuid.UUID{uuid.New()}})); errs.Code() != "NOT_FOUND" || errs[0].Extensions.Field != "agents[0]" {
		t.Errorf("an agent that is not there: %s", errs)
	}
	super := c.Manager.As(t, c.Superadmin)
	if _, errs := clustertest.TryCreate(t, super, on(managertest.Vars{"strictAgents": true, "project": c.A.Project.ID})); errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "agents" {
		t.Errorf("strict without agents: %s", errs)
	}
	// While the agent is cordoned, a session that prefers it runs elsewhere, and a session that is
	// restricted to it waits with the reason.
	c.Client.Agent.UpdateOneID(b).SetSchedulable(false).ExecX(ctx)
	if got := where(c.Create(t, on(managertest.Vars{"agents": []uuid.UUID{b}}))); got != a {
		t.Errorf("runs on %s, which is cordoned", got)
	}
	strict, errs := clustertest.TryCreate(t, super, on(managertest.Vars{"agents": []uuid.UUID{b}, "strictAgents": true, "project": c.A.Project.ID}))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	c.WaitForReason(t, strict, "No machine can run the session: 1 is not among the requested machines, 1 is cordoned.")
	c.Client.Agent.UpdateOneID(b).SetSchedulable(true).ExecX(ctx)
	if got := where(strict); got != b {
		t.Errorf("runs on %s, kept to %s", got, b)
	}
	c.CheckInvariants(t, false)
}
