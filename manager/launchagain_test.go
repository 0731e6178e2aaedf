package manager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

type vars = managertest.Vars

func TestTags(t *testing.T) {
	c := clustertest.New(t, 1)
	for _, bad := range [][]string{{""}, {"-a"}, {"a b"}, {"a", "a"}, {strings.Repeat("x", 65)}, strings.Split(strings.Repeat("a,", 17), ",")} {
		if _, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(vars{"tags": bad}, "exit", "0")); errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("tags %q: %s", bad, errs)
		}
	}
	one := c.Create(t, clustertest.SessionInput(vars{"tags": []string{"run=3", "team:nlp"}}, "sleep", "600"))
	c.Create(t, clustertest.SessionInput(vars{"tags": []string{"run"}}, "sleep", "600"))
	tagged := func(tag string) (ids []uuid.UUID) {
		var got struct {
			Sessions struct {
				Edges []struct {
					Node struct {
						ID   uuid.UUID
						Tags []string
					}
				}
			}
		}
		c.Member.Must(t, `query($w: SessionWhereInput) { sessions(where: $w) { edges { node { id tags } } } }`, vars{"w": vars{"and": []vars{{"tag": tag}}}}, &got)
		for _, e := range got.Sessions.Edges {
			ids = append(ids, e.Node.ID)
		}
		return ids
	}
	if got := tagged("run=3"); !slices.Equal(got, []uuid.UUID{one}) {
		t.Errorf("tagged run=3: %v", got)
	}
	const set = `mutation($id: ID!, $tags: [String!]!) { setSessionTags(input: {id: $id, tags: $tags}) { session { tags } } }`
	c.Member.Must(t, set, vars{"id": one, "tags": []string{"done"}}, nil)
	if got := tagged("run=3"); len(got) != 0 {
		t.Errorf("still tagged: %v", got)
	}
	if got := tagged("done"); !slices.Equal(got, []uuid.UUID{one}) {
		t.Errorf("tagged done: %v", got)
	}
	if errs := c.Member.Ask(t, set, vars{"id": one, "tags": []string{"a b"}}, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("a bad tag: %s", errs)
	}
	if errs := c.Manager.As(t, c.B.Member).Ask(t, set, vars{"id": one, "tags": []string{}}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("by another user: %s", errs)
	}
}

func TestCloneTakesOverTheRequest(t *testing.T) {
	c := clustertest.New(t, 1)
	first := c.Create(t, clustertest.SessionInput(vars{
		"name": "lab", "environment": vars{"SECRET": "s", "A": "1"}, "bootstrapScript": "true", "tags": []string{"x"}, "priority": 20,
		"apps": []vars{{"name": "board", "port": 6006, "environment": vars{"TOKEN": "t"}}}, "autoMount": false,
	}, "exit", "0"))
	c.WaitForEnd(t, first)
	second := c.Create(t, vars{"from": first, "name": "lab2", "slots": vars{"mem": "32m"}, "environment": vars{"A": "2"}})
	a, b := c.Session(t, first), c.Session(t, second)
	if b.Name != "lab2" || b.Slots["mem"] != 32<<20 || b.Slots["cpu"] != a.Slots["cpu"] || b.Priority != 20 || b.AutoMount || !slices.Equal(b.Tags, a.Tags) || !slices.Equal(b.Command, a.Command) {
		t.Errorf("cloned as %+v", b)
	}
	var got struct {
		Node struct {
			Request *struct {
				Environment map[string]string
				Apps        []struct{ Environment map[string]string }
			}
		}
	}
	const ask = `query($id: ID!) { node(id: $id) { ... on Session { request { environment apps { environment } } } } }`
	c.Member.Must(t, ask, vars{"id": second}, &got)
	if r := got.Node.Request; r == nil || r.Environment["SECRET"] != "s" || r.Environment["A"] != "2" || r.Apps[0].Environment["TOKEN"] != "t" {
		t.Errorf("the request of the clone: %+v", got.Node.Request)
	}
	if _, errs := clustertest.TryCreate(t, c.Member, vars{"slots": vars{"cpu": "1"}}); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("without image: %s", errs)
	}
}

// Those who see a session but cannot enter it can neither read its request nor clone it.
func TestClonesNeedTheRequest(t *testing.T) {
	c := clustertest.New(t, 1)
	id := c.Create(t, clustertest.SessionInput(vars{"environment": vars{"SECRET": "s"}}, "sleep", "600"))
	lead := c.Manager.As(t, c.A.Lead)
	var got struct {
		Node struct{ Request *struct{ Image string } }
	}
	lead.Must(t, `query($id: ID!) { node(id: $id) { ... on Session { request { image environment } } } }`, vars{"id": id}, &got)
	if got.Node.Request != nil {
		t.Error("the request is shown to somebody who cannot enter the session")
	}
	if _, errs := clustertest.TryCreate(t, lead, vars{"from": id, "project": c.A.Project.ID}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("cloned by a lead: %s", errs)
	}
	if _, errs := clustertest.TryCreate(t, c.Manager.As(t, c.B.Member), vars{"from": id}); errs.Code() != "NOT_FOUND" {
		t.Errorf("cloned by another user: %s", errs)
	}
	const restart = `mutation($id: ID!) { restartSession(input: {id: $id}) { session { id } } }`
	if errs := lead.Ask(t, restart, vars{"id": id}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("restarted by a lead: %s", errs)
	}
}

func restart(t *testing.T, c *clustertest.Cluster, id uuid.UUID) uuid.UUID {
	t.Helper()
	var got struct {
		RestartSession struct{ Session struct{ ID uuid.UUID } }
	}
	c.Member.Must(t, `mutation($id: ID!) { restartSession(input: {id: $id}) { session { id } } }`, vars{"id": id}, &got)
	return got.RestartSession.Session.ID
}

func TestRestart(t *testing.T) {
	c := clustertest.New(t, 1)
	t.Run("of a session that has ended", func(t *testing.T) {
		old := c.Create(t, clustertest.SessionInput(vars{"name": "job"}, "exit", "3"))
		c.WaitForEnd(t, old)
		id := restart(t, c, old)
		if s := c.WaitForEnd(t, id); s.Name != "job" || s.RestartOfID == nil || *s.RestartOfID != old || s.ExitCode == nil || *s.ExitCode != 3 {
			t.Errorf("restarted as %+v", s)
		}
		if s := c.Session(t, old); !s.Replaced || !strings.Contains(c.History(t, old), "restarted") || !strings.Contains(c.History(t, id), old.String()) {
			t.Errorf("no link between\n%s\nand\n%s", c.History(t, old), c.History(t, id))
		}
		if errs := c.Member.Ask(t, `mutation($id: ID!) { restartSession(input: {id: $id}) { session { id } } }`, vars{"id": old}, nil); errs.Code() != "FAILED_PRECONDITION" {
			t.Errorf("restarted twice: %s", errs)
		}
	})
	t.Run("of a session that runs", func(t *testing.T) {
		old := c.Create(t, clustertest.SessionInput(vars{"name": "lab"}, "sleep", "600"))
		c.WaitFor(t, old, lifecycle.Running)
		id := restart(t, c, old)
		if again := restart(t, c, old); again != id {
			t.Errorf("the second request started %s, the first %s", again, id)
		}
		s := c.WaitFor(t, id, lifecycle.Running)
		if before := c.Session(t, old); before.TerminatedAt == nil || before.TerminatedAt.After(*s.ScheduledAt) || s.Name != "lab" {
			t.Errorf("%s was placed at %v, before its predecessor ended at %v", s.Name, s.ScheduledAt, before.TerminatedAt)
		}
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
	})
	t.Run("of a session that waits", func(t *testing.T) {
		old := c.Create(t, clustertest.SessionInput(vars{"name": "later", "slots": vars{"cpu": "0.05", "mem": "16m"}, "startsAt": time.Now().Add(24 * time.Hour)}, "exit", "0"))
		id := restart(t, c, old)
		if before := c.Session(t, old); before.Status != lifecycle.Cancelled {
			t.Errorf("it is %s", before.Status)
		}
		if s := c.Session(t, id); s.Status != lifecycle.Pending || s.StartsAt == nil {
			t.Errorf("restarted as %+v", s)
		}
	})
}

// An array runs at most the configured number of members at once, and members know their index.
func TestArray(t *testing.T) {
	c := clustertest.New(t, 1)
	const create = `mutation($in: CreateSessionArrayInput!) { createSessionArray(input: $in) { array { id size maxRunning indexes } sessions } }`
	for _, bad := range []string{"", "a", "1-", "3-1", "1,1", "1-5,3", "1-10:0", "1-3%0", "1-3%x", "5:2", "0-999999", "-1", "1000000"} {
		if errs := c.Member.Ask(t, create, vars{"in": vars{"indexes": bad, "session": clustertest.SessionInput(nil, "exit", "0")}}, nil); errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("indexes %q: %s", bad, errs)
		}
	}
	if errs := c.Member.Ask(t, create, vars{"in": vars{"indexes": "1-2", "session": clustertest.SessionInput(nil)}}, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("an interactive array: %s", errs)
	}
	var made struct {
		CreateSessionArray struct {
			Array    struct{ ID uuid.UUID }
			Sessions int
		}
	}
	c.Member.Must(t, create, vars{"in": vars{"indexes": "1-7:2,10%2", "session": clustertest.SessionInput(vars{"name": "sweep"}, "sleep", "600")}}, &made)
	array := made.CreateSessionArray.Array.ID
	after := c.Create(t, clustertest.SessionInput(vars{"name": "after", "dependsOn": []uuid.UUID{array}}, "exit", "0"))
	running := func() (names []string) {
		for _, s := range c.Client.Session.Query().Where(session.ArrayID(array), session.StatusEQ(lifecycle.Running)).Order(session.ByArrayIndex()).AllX(c.System(t)) {
			names = append(names, s.Name)
		}
		return names
	}
	managertest.Eventually(t, "two members run", func() bool { return len(running()) == 2 })
	if got := running(); !slices.Equal(got, []string{"sweep-1", "sweep-3"}) {
		t.Errorf("these run: %v", got)
	}
	managertest.Eventually(t, "the others say why they wait", func() bool {
		n := 0
		for _, s := range c.Client.Session.Query().Where(session.ArrayID(array), session.StatusEQ(lifecycle.Pending)).AllX(c.System(t)) {
			if s.Pending != nil && s.Pending.Stage == "held" && strings.Contains(s.Pending.Summary, "at most 2 run at once") {
				n++
			}
		}
		return n == 3
	})
	first := c.Client.Session.Query().Where(session.ArrayID(array), session.ArrayIndex(1)).OnlyX(c.System(t))
	c.Terminate(t, first.ID, true)
	managertest.Eventually(t, "the next member runs", func() bool { return slices.Equal(running(), []string{"sweep-3", "sweep-5"}) })
	counts := func() (text string) {
		var got struct {
			Node struct {
				Counts struct{ Pending, Running, Succeeded, Failed, Cancelled int }
			}
		}
		c.Member.Must(t, `query($id: ID!) { node(id: $id) { ... on SessionArray { counts { pending running succeeded failed cancelled } } } }`, vars{"id": array}, &got)
		return fmt.Sprint(got.Node.Counts)
	}
	if got := counts(); got != "{2 2 0 0 1}" {
		t.Errorf("counts %s", got)
	}
	c.Member.Must(t, `mutation($id: ID!) { cancelSessionArray(input: {id: $id, force: true}) { sessions } }`, vars{"id": array}, nil)
	managertest.Eventually(t, "all members end", func() bool { return counts() == "{0 0 0 0 5}" })
	if s := c.WaitForEnd(t, after); s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonDependencyFailed {
		t.Errorf("the dependent session ended for %v", s.TerminationReason)
	}
	var again struct{ RetrySessionArray struct{ Sessions int } }
	c.Member.Must(t, `mutation($id: ID!) { retrySessionArray(input: {id: $id}) { sessions } }`, vars{"id": array}, &again)
	if again.RetrySessionArray.Sessions != 5 {
		t.Errorf("%d members retried", again.RetrySessionArray.Sessions)
	}
	managertest.Eventually(t, "two members run again", func() bool { return slices.Equal(running(), []string{"sweep-1", "sweep-3"}) })
}

// A session that depends on an array starts when all members have succeeded, and no array exceeds
// the limits of policies.
func TestArraysInAChain(t *testing.T) {
	c := clustertest.New(t, 1)
	var made struct {
		CreateSessionArray struct{ Array struct{ ID uuid.UUID } }
	}
	const create = `mutation($in: CreateSessionArrayInput!) { createSessionArray(input: $in) { array { id } } }`
	c.Member.Must(t, create, vars{"in": vars{"indexes": "0-3", "session": clustertest.SessionInput(vars{"idempotencyKey": "k"}, "exit", "0")}}, &made)
	one := made.CreateSessionArray.Array.ID
	c.Member.Must(t, create, vars{"in": vars{"indexes": "0-3", "session": clustertest.SessionInput(vars{"idempotencyKey": "k"}, "exit", "0")}}, &made)
	if made.CreateSessionArray.Array.ID != one {
		t.Error("the same key created two arrays")
	}
	after := c.Create(t, clustertest.SessionInput(vars{"dependsOn": []uuid.UUID{one}}, "exit", "0"))
	if s := c.WaitForEnd(t, after); s.Result != session.ResultSuccess {
		t.Errorf("it ended as %s\n%s", s.Result, c.History(t, after))
	}
	p := c.Client.ResourcePolicy.Create().SetName("few").SetMaxPendingSessions(3).SaveX(c.System(t))
	c.Client.PolicyAttachment.Create().SetPolicy(p).SetUser(c.A.Member).ExecX(c.System(t))
	before := c.Client.Session.Query().CountX(c.System(t))
	if errs := c.Member.Ask(t, create, vars{"in": vars{"indexes": "1-4", "session": clustertest.SessionInput(nil, "exit", "0")}}, nil); errs.Code() != "RESOURCE_EXHAUSTED" {
		t.Errorf("an array over a limit: %s", errs)
	}
	if n := c.Client.Session.Query().CountX(c.System(t)); n != before {
		t.Errorf("%d members of it were stored", n-before)
	}
}
