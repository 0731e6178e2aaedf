package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const (
	reportFields = `stage summary position dropped { check slot count } nearest { slot requested free }
  ahead { position mine why session { id } } suggestions { kind text field from to slots session }`
	whySession = `query($id: ID!) { node(id: $id) { ... on Session { pending { ` + reportFields + ` } } } }`
	dryRun     = `query($in: CreateSessionInput!) { dryRun(input: $in) { verdict refusals { code field message limit }
  agents { name } resourceGroup { name } pending { ` + reportFields + ` } } }`
	queueOf = `query($id: ID!) { node(id: $id) { ... on ResourceGroup { queue { totalCount entries {
  position mine priority waitingSince stage why session { id owner { email } } } } } } }`
	changePending = `mutation($in: UpdatePendingSessionInput!) { updatePendingSession(input: $in) { session { id status slots } } }`
)

// why is the report of a session that waits, or of a dry run.
type why struct {
	Stage, Summary string
	Position       int
	Dropped        []struct {
		Check, Slot string
		Count       int
	}
	Nearest *struct{ Slot, Requested, Free string }
	Ahead   []struct {
		Position int
		Mine     bool
		Why      string
		Session  *struct{ ID uuid.UUID }
	}
	Suggestions []struct {
		Kind, Text, Field, From, To string
		Slots                       map[string]string
		Session                     *uuid.UUID
	}
}

type trial struct {
	DryRun struct {
		Verdict  string
		Refusals []struct{ Code, Field, Message, Limit string }
		Agents   []struct{ Name string }
		Pending  *why
	}
}

// halved returns a cluster of three machines with eight accelerators each. Sessions of the member
// use half of each accelerator.
func halved(t *testing.T) *clustertest.Cluster {
	c := clustertest.New(t, 0)
	ctx := c.System(t)
	c.Grow(t, 3, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 8}`)})
	managertest.Eventually(t, "24 accelerators", func() bool {
		return c.Client.Device.Query().Where(device.Plugin("mock"), device.Allocatable(true), device.HealthEQ(device.HealthHealthy)).CountX(ctx) == 24
	})
	var ids []uuid.UUID
	for range 48 {
		ids = append(ids, c.Create(t, shares("0.5")))
	}
	for _, id := range ids {
		c.WaitFor(t, id, lifecycle.Running)
	}
	seen := map[uuid.UUID]bool{}
	for _, a := range c.Client.Allocation.Query().Where(allocation.Slot("mock.shares"), allocation.FreedAtIsNil()).AllX(ctx) {
		if seen[a.DeviceID] {
			if errs := c.Terminate(t, a.SessionID, true); len(errs) > 0 {
				t.Fatal(errs)
			}
			c.WaitForEnd(t, a.SessionID)
		}
		seen[a.DeviceID] = true
	}
	return c
}

func shares(amount string) managertest.Vars {
	return clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": "16m", "mock.shares": amount}}, "sleep", "600")
}

// A session requests a whole accelerator while half of each one is free. It waits, and the report
// says that the free capacity is fragmented and that a request for a half would start. After that
// change, the session runs.
func TestFragmentation(t *testing.T) {
	c := halved(t)
	ctx := c.System(t)
	before := c.Client.Session.Query().CountX(ctx)
	var tried trial
	c.Member.Must(t, dryRun, managertest.Vars{"in": shares("1")}, &tried)
	if tried.DryRun.Verdict != "WAITS" || tried.DryRun.Pending == nil {
		t.Fatalf("the dry run: %+v", tried.DryRun)
	}
	halfSuggested(t, tried.DryRun.Pending)
	var fits trial
	c.Member.Must(t, dryRun, managertest.Vars{"in": shares("0.5")}, &fits)
	if fits.DryRun.Verdict != "NOW" || len(fits.DryRun.Agents) != 1 || fits.DryRun.Pending != nil {
		t.Errorf("the dry run of a half: %+v", fits.DryRun)
	}
	if n := c.Client.Session.Query().CountX(ctx); n != before {
		t.Errorf("dry runs created %d sessions", n-before)
	}

	id := c.Create(t, shares("1"))
	c.WaitForReason(t, id, "mock.shares")
	behind := c.Create(t, shares("1"))
	c.WaitForReason(t, behind, "mock.shares")
	w := whyOf(t, c, id)
	halfSuggested(t, w)
	if w.Position != 1 || len(w.Ahead) > 0 {
		t.Errorf("position %d behind %v", w.Position, w.Ahead)
	}
	if w := whyOf(t, c, behind); w.Position != 2 || len(w.Ahead) != 1 || !w.Ahead[0].Mine || w.Ahead[0].Session.ID != id {
		t.Errorf("the second has position %d behind %+v", w.Position, w.Ahead)
	}
	seesQueue(t, c, id)

	var changed struct {
		UpdatePendingSession struct {
			Session struct {
				ID    uuid.UUID
				Slots map[string]string
			}
		}
	}
	c.Member.Must(t, changePending, managertest.Vars{"in": managertest.Vars{"id": id, "slots": w.Suggestions[0].Slots}}, &changed)
	if s := changed.UpdatePendingSession.Session; s.ID != id || s.Slots["mock.shares"] != "0.5" {
		t.Errorf("changed to %+v", s)
	}
	c.WaitFor(t, id, lifecycle.Running)
	held := c.Client.Allocation.Query().Where(allocation.SessionID(id), allocation.Slot("mock.shares"), allocation.FreedAtIsNil()).OnlyX(ctx)
	if held.Amount != 500 {
		t.Errorf("it holds %d thousandths of an accelerator", held.Amount)
	}
	if text := c.History(t, id); !strings.Contains(text, "changed while it waits: 0.5 mock.shares instead of 1") {
		t.Errorf("the history lacks the change:\n%s", text)
	}
	errs := c.Member.Ask(t, changePending, managertest.Vars{"in": managertest.Vars{"id": id, "slots": managertest.Vars{"mock.shares": "0.25"}}}, nil)
	if errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("a change of a running session: %s", errs)
	}

	// After the suggested session has ended, the other one starts.
	var end *uuid.UUID
	managertest.Eventually(t, "a session whose end makes room", func() bool {
		for _, s := range whyOf(t, c, behind).Suggestions {
			if s.Kind == "END_SESSION" {
				end = s.Session
			}
		}
		return end != nil
	})
	c.Terminate(t, *end, true)
	c.WaitFor(t, behind, lifecycle.Running)
}

// halfSuggested fails unless a report says that each machine has only half devices free, and that a
// request for a half would start.
func halfSuggested(t *testing.T, w *why) {
	t.Helper()
	if w.Stage != "ROOM" || len(w.Dropped) != 1 || w.Dropped[0].Check != "slot_contiguity" || w.Dropped[0].Slot != "mock.shares" || w.Dropped[0].Count != 3 {
		t.Errorf("stage %s, dropped %+v: %s", w.Stage, w.Dropped, w.Summary)
	}
	if w.Nearest == nil || w.Nearest.Requested != "1" || w.Nearest.Free != "0.5" {
		t.Errorf("the nearest fit: %+v", w.Nearest)
	}
	if len(w.Suggestions) == 0 {
		t.Fatal("nothing is suggested")
	}
	if s := w.Suggestions[0]; s.Kind != "SLOTS" || s.Field != "slots.mock.shares" || s.From != "1" || s.To != "0.5" || s.Slots["mock.shares"] != "0.5" || s.Slots["cpu"] != "0.05" {
		t.Errorf("suggested %+v", s)
	}
}

func whyOf(t *testing.T, c *clustertest.Cluster, id uuid.UUID) *why {
	t.Helper()
	var got struct{ Node struct{ Pending *why } }
	c.Member.Must(t, whySession, managertest.Vars{"id": id}, &got)
	if got.Node.Pending == nil {
		t.Fatalf("it does not wait:\n%s", c.History(t, id))
	}
	return got.Node.Pending
}

// seesQueue checks who can see the session at the head of the queue: its owner and the
// administrators can, and other users get nothing that identifies it.
func seesQueue(t *testing.T, c *clustertest.Cluster, first uuid.UUID) {
	t.Helper()
	s := c.Client.Session.Query().Where(session.ID(first)).WithOwner().OnlyX(c.System(t))
	for _, one := range []struct {
		name       string
		as         *managertest.Client
		sees, mine bool
	}{{"owner", c.Member, true, true}, {"superadmin", c.Manager.As(t, c.Superadmin), true, false}, {"stranger", c.Manager.As(t, c.B.Member), false, false}} {
		var got struct {
			Node struct {
				Queue struct {
					TotalCount int
					Entries    []struct {
						Position, Priority int
						Mine               bool
						Stage, Why         string
						WaitingSince       string
						Session            *struct {
							ID    uuid.UUID
							Owner *struct{ Email string }
						}
					}
				}
			}
		}
		one.as.Must(t, queueOf, managertest.Vars{"id": c.Group.ID}, &got)
		q := got.Node.Queue
		if q.TotalCount != 2 || len(q.Entries) != 2 {
			t.Fatalf("%s sees %+v", one.name, q)
		}
		e := q.Entries[0]
		if e.Position != 1 || e.Priority != 10 || e.Mine != one.mine || e.Stage != "ROOM" || (e.Session != nil) != one.sees {
			t.Errorf("%s sees %+v", one.name, e)
		}
		if one.sees && (e.Session.ID != first || e.Session.Owner.Email != s.Edges.Owner.Email || !strings.Contains(e.Why, "mock.shares")) {
			t.Errorf("%s sees %+v", one.name, e)
		}
		for _, secret := range []string{s.ID.String(), s.Name, s.Edges.Owner.Email, "mock.shares"} {
			if !one.sees && strings.Contains(fmt.Sprintf("%+v", q), secret) {
				t.Errorf("%s gets %s", one.name, secret)
			}
		}
	}
}

// A dry run reports everything that createSession would refuse, and why a session would wait
// forever.
func TestDryRunRefuses(t *testing.T) {
	c := clustertest.New(t, 1)
	super := c.Manager.As(t, c.Superadmin)
	taken := c.Create(t, clustertest.SessionInput(managertest.Vars{"name": "taken"}, "sleep", "600"))
	c.WaitFor(t, taken, lifecycle.Running)
	for _, one := range []struct {
		name    string
		in      managertest.Vars
		verdict string
		fields  []string
	}{
		{"all well", clustertest.SessionInput(nil, "true"), "NOW", nil},
		{"several mistakes", clustertest.SessionInput(managertest.Vars{"name": "-", "image": "nothing", "priority": 7, "mounts": []managertest.Vars{{"vfolder": "nothing"}}}, "true"), "REFUSED",
			[]string{"name", "image", "mounts[0].vfolder"}},
		{"too much", clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "100000"}}, "true"), "NEVER", []string{"slots.cpu"}},
		{"too much and a mistake", clustertest.SessionInput(managertest.Vars{"name": "-", "slots": managertest.Vars{"cpu": "100000"}}, "true"), "REFUSED", []string{"name", "slots.cpu"}},
		{"no such slot", clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"none.device": "1"}}, "true"), "REFUSED", []string{"slots.none.device"}},
		{"too little disk", clustertest.SessionInput(managertest.Vars{"diskBytes": 1}, "true"), "REFUSED", []string{"diskBytes"}},
		{"a name that is taken", clustertest.SessionInput(managertest.Vars{"name": "taken"}, "true"), "REFUSED", []string{"name"}},
		{"after another", clustertest.SessionInput(managertest.Vars{"dependsOn": []uuid.UUID{taken}}, "true"), "WAITS", nil},
		{"no project", clustertest.SessionInput(managertest.Vars{"project": c.B.Project.ID}, "true"), "REFUSED", []string{"project"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			var got trial
			c.Member.Must(t, dryRun, managertest.Vars{"in": one.in}, &got)
			var fields []string
			for _, r := range got.DryRun.Refusals {
				fields = append(fields, r.Field)
			}
			if got.DryRun.Verdict != one.verdict || fmt.Sprint(fields) != fmt.Sprint(one.fields) {
				t.Errorf("%+v, want %s %v", got.DryRun, one.verdict, one.fields)
			}
			if id, errs := clustertest.TryCreate(t, c.Member, one.in); (len(errs) > 0) != (one.verdict == "REFUSED" || one.verdict == "NEVER") {
				t.Errorf("createSession: %v %s", id, errs)
			}
		})
	}
	if errs := c.Manager.As(t, c.Monitor).Ask(t, dryRun, managertest.Vars{"in": clustertest.SessionInput(nil, "true")}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a dry run by a monitor: %s", errs)
	}
	var got trial
	super.Must(t, dryRun, managertest.Vars{"in": clustertest.SessionInput(managertest.Vars{"project": c.A.Project.ID}, "true")}, &got)
	if got.DryRun.Verdict != "NOW" {
		t.Errorf("a dry run by a superadmin: %+v", got.DryRun)
	}
}

func TestWhyASessionWaits(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	pol := c.Client.ResourcePolicy.Create().SetName("one").SetMaxSessions(1).SetMaxPendingSessions(2).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	runs := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, runs, lifecycle.Running)
	first := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	second := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	waits := func(id uuid.UUID, position int) func() bool {
		return func() bool {
			s := c.Session(t, id)
			return s.Pending != nil && s.Pending.Position == position && len(s.Pending.Limits) == 1 && s.Pending.Limits[0].What == "sessions"
		}
	}
	managertest.Eventually(t, "the first waits", waits(first, 1))
	managertest.Eventually(t, "the second waits", waits(second, 2))
	if _, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(nil, "exit", "0")); errs.Code() != "RESOURCE_EXHAUSTED" {
		t.Errorf("a third that waits: %s", errs)
	}
	c.Terminate(t, runs, true)
	c.WaitForEnd(t, first)
	if s := c.WaitFor(t, second, lifecycle.Running); s.Pending != nil {
		t.Errorf("a running session waits for %v", s.Pending)
	}
	c.Terminate(t, second, true)
	c.WaitForEnd(t, second)

	// Without a suitable agent, the session waits for another reason.
	c.Client.PolicyAttachment.Delete().ExecX(ctx)
	c.Client.Agent.Update().SetSchedulable(false).ExecX(ctx)
	third := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
	managertest.Eventually(t, "the third waits", func() bool {
		s := c.Session(t, third)
		return s.Pending != nil && len(s.Pending.Dropped) > 0 && s.Pending.Dropped[0].Check == "cordoned"
	})
	c.Client.Agent.Update().SetSchedulable(true).ExecX(ctx)
	if s := c.WaitForEnd(t, third); s.Result != session.ResultSuccess {
		t.Errorf("%s %s", s.Status, s.Result)
	}
	c.CheckInvariants(t, true)
}
