package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A session gets one warning before its lifetime ends, and then it ends.
func TestLifetimeIsOver(t *testing.T) {
	c := clustertest.New(t, 1)
	for _, seconds := range []int{59, 31536001} {
		if _, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"lifetime": seconds}, "sleep", "600")); errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("a lifetime of %d seconds: %s", seconds, errs)
		}
	}
	id := c.Create(t, clustertest.SessionInput(managertest.Vars{"lifetime": 3600}, "sleep", "600"))
	s := c.WaitFor(t, id, lifecycle.Running)
	var got struct {
		Node struct {
			Lifetime int
			EndsAt   time.Time
		}
	}
	c.Member.Must(t, `query($id: ID!) { node(id: $id) { ... on Session { lifetime endsAt } } }`, managertest.Vars{"id": id}, &got)
	if got.Node.Lifetime != 3600 || !got.Node.EndsAt.Equal(s.StartedAt.Add(time.Hour)) {
		t.Errorf("shown as %+v, started at %s", got.Node, s.StartedAt)
	}
	began := func(ago time.Duration) {
		c.Client.Session.UpdateOneID(id).SetStartedAt(time.Now().Add(-ago)).ExecX(c.System(t))
	}
	began(56 * time.Minute)
	warnings := func() []*ent.SessionEvent {
		return c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id), sessionevent.Code("lifetime_warning")).AllX(c.System(t))
	}
	managertest.Eventually(t, "the session is warned", func() bool { return len(warnings()) > 0 })
	if s := c.Session(t, id); s.Status != lifecycle.Running {
		t.Fatalf("it is %s before its time", s.Status)
	}
	began(time.Hour)
	if s := c.WaitForEnd(t, id); s.TerminationReason == nil || *s.TerminationReason != session.TerminationReasonLifetime {
		t.Errorf("ended for %v\n%s", s.TerminationReason, c.History(t, id))
	}
	if all := warnings(); len(all) != 1 || !strings.Contains(all[0].Message, "its lifetime of 1h0m0s is over") {
		t.Errorf("warned %d times: %+v", len(all), all)
	}
}

// Sessions of a session group are placed by the rule of the group. A session that cannot be placed
// waits, and its pending reason names the rule.
func TestSessionGroups(t *testing.T) {
	c := clustertest.New(t, 2)
	make := func(as *managertest.Client, in managertest.Vars) (uuid.UUID, managertest.Errors) {
		t.Helper()
		var got struct {
			CreateSessionGroup struct{ SessionGroup struct{ ID uuid.UUID } }
		}
		errs := as.Ask(t, `mutation($in: CreateSessionGroupInput!) { createSessionGroup(input: $in) { sessionGroup { id } } }`, managertest.Vars{"in": in}, &got)
		return got.CreateSessionGroup.SessionGroup.ID, errs
	}
	apart, errs := make(c.Member, managertest.Vars{"name": "apart", "placement": "SPREAD", "strict": true})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := make(c.Member, managertest.Vars{"name": "apart", "placement": "PACK"}); errs.Code() != "ALREADY_EXISTS" {
		t.Errorf("a second one of that name: %s", errs)
	}
	if _, errs := make(c.Member, managertest.Vars{"name": "-", "placement": "PACK"}); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("a name that is none: %s", errs)
	}
	lead := c.Manager.As(t, c.A.Lead)
	in := clustertest.SessionInput(managertest.Vars{"sessionGroup": apart, "project": c.A.Project.ID}, "sleep", "600")
	if _, errs := clustertest.TryCreate(t, lead, in); errs.Code() != "INVALID_ARGUMENT" && errs.Code() != "NOT_FOUND" {
		t.Errorf("with the session group of somebody else: %s", errs)
	}
	var list []uuid.UUID
	for range 2 {
		id := c.Create(t, in)
		c.WaitFor(t, id, lifecycle.Running)
		list = append(list, id)
	}
	if c.NodeOf(t, list[0]) == c.NodeOf(t, list[1]) {
		t.Errorf("both run on %s", c.NodeOf(t, list[0]).Name)
	}
	third := c.Create(t, in)
	managertest.Eventually(t, "the third one is told why it waits", func() bool {
		s := c.Session(t, third)
		return s.Pending != nil && len(s.Pending.Dropped) == 1 && s.Pending.Dropped[0].Check == "group" && s.Pending.Dropped[0].Count == 2
	})
	c.Terminate(t, list[0], true)
	c.WaitForEnd(t, list[0])
	c.WaitFor(t, third, lifecycle.Running)

	var got struct {
		SessionGroups struct {
			Edges []struct {
				Node struct {
					Name     string
					Strict   bool
					Sessions struct{ TotalCount int }
				}
			}
		}
	}
	c.Member.Must(t, `{ sessionGroups(first: 10) { edges { node { name strict sessions { totalCount } } } } }`, nil, &got)
	if e := got.SessionGroups.Edges; len(e) != 1 || e[0].Node.Name != "apart" || !e[0].Node.Strict || e[0].Node.Sessions.TotalCount != 3 {
		t.Errorf("listed as %+v", got)
	}
	c.Member.Must(t, `mutation($id: ID!) { deleteSessionGroup(input: {id: $id}) { id } }`, managertest.Vars{"id": apart}, nil)
	if c.Client.SessionGroup.Query().Where(sessiongroup.ID(apart)).ExistX(c.System(t)) {
		t.Error("it is still there")
	}
	if s := c.Session(t, third); s.Status != lifecycle.Running || s.SessionGroupID != nil {
		t.Errorf("a session of it is %s, of group %v", s.Status, s.SessionGroupID)
	}
	if _, errs := clustertest.TryCreate(t, c.Member, in); errs.Code() != "NOT_FOUND" {
		t.Errorf("with a session group that is gone: %s", errs)
	}
}
