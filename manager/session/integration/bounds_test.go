package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// One preset could start now for one caller, later for another and never for a third.
func TestPresetFitsPerCaller(t *testing.T) {
	c := clustertest.New(t, 1)
	root := c.Manager.As(t, c.Superadmin)
	var group struct {
		CreateResourceGroup struct{ ResourceGroup struct{ ID uuid.UUID } }
	}
	root.Must(t, `mutation { createResourceGroup(input: {name: "closed", public: false}) { resourceGroup { id } } }`, nil, &group)
	for name, slots := range map[string]managertest.Vars{
		"small": {"cpu": "0.05", "mem": "16m"}, "medium": {"cpu": "0.2", "mem": "16m"}, "huge": {"cpu": "100000", "mem": "16m"},
	} {
		root.Must(t, `mutation($in: CreateResourcePresetInput!) { createResourcePreset(input: $in) { preset { id } } }`,
			managertest.Vars{"in": managertest.Vars{"name": name, "slots": slots}}, nil)
	}
	c.CreatePolicy(t, c.A.Member, "tenth", managertest.Vars{"totalSlots": managertest.Vars{"cpu": "0.1"}})
	held := c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.08", "mem": "16m"}}, "sleep", "600"))
	c.WaitFor(t, held, lifecycle.Running)
	fits := func(u *ent.User, args string) map[string]string {
		t.Helper()
		var out struct {
			ResourcePresets struct {
				Edges []struct {
					Node struct {
						Name string
						Fit  struct{ State, Reason string }
					}
				}
			}
		}
		c.Manager.As(t, u).Must(t, `{ resourcePresets { edges { node { name fit`+args+` { state reason } } } } }`, nil, &out)
		got := map[string]string{}
		for _, e := range out.ResourcePresets.Edges {
			p := e.Node
			if got[p.Name] = p.Fit.State; (p.Fit.State == "NOW") != (p.Fit.Reason == "") {
				t.Errorf("%s for %s: %s because of %q", p.Name, u.Email, p.Fit.State, p.Fit.Reason)
			}
		}
		return got
	}
	for _, one := range []struct {
		who  *ent.User
		args string
		want string
	}{
		{c.A.Member, "", "map[huge:NEVER medium:NEVER small:WHEN_FREE]"},
		{c.A.Lead, "", "map[huge:NEVER medium:NOW small:NOW]"},
		{c.A.Loner, "", "map[huge:NEVER medium:NEVER small:NEVER]"}, // in no project
		{c.A.Lead, fmt.Sprintf("(project: %q)", c.B.Project.ID), "map[huge:NEVER medium:NEVER small:NEVER]"},
		{c.A.Lead, fmt.Sprintf("(resourceGroup: %q)", group.CreateResourceGroup.ResourceGroup.ID), "map[huge:NEVER medium:NEVER small:NEVER]"},
	} {
		if got := fmt.Sprint(fits(one.who, one.args)); got != one.want {
			t.Errorf("%s%s: %s, want %s", one.who.Email, one.args, got, one.want)
		}
	}
	c.Terminate(t, held, true)
	c.WaitForEnd(t, held)
	if got := fits(c.A.Member, "")["small"]; got != "NOW" {
		t.Errorf("after the end of what was in its way: %s", got)
	}
}

// Pending sessions are limited in number and in amounts, however many requests are concurrent; the
// refusal names the policy, and an end makes room.
func TestWaitingIsBounded(t *testing.T) {
	c := clustertest.New(t, 0)
	many := func(as *managertest.Client, amount string) (made []uuid.UUID, refused managertest.Errors) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			all.Go(func() {
				id, errs := clustertest.TryCreate(t, as, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": amount, "mem": "16m"}}, "sleep", "600"))
				mu.Lock()
				defer mu.Unlock()
				if len(errs) == 0 {
					made = append(made, id)
				} else if refused = errs; errs.Code() != "RESOURCE_EXHAUSTED" {
					t.Error(errs)
				}
			})
		}
		all.Wait()
		return made, refused
	}
	c.CreatePolicy(t, c.A.Member, "three wait", managertest.Vars{"maxPendingSessions": 3})
	made, refused := many(c.Member, "0.05")
	if len(made) != 3 || !strings.Contains(refused.String(), "three wait") || refused[0].Extensions.Limit != "3" {
		t.Errorf("%d wait: %s", len(made), refused)
	}
	c.Terminate(t, made[0], true)
	c.WaitForEnd(t, made[0])
	if again, _ := many(c.Member, "0.05"); len(again) != 1 {
		t.Errorf("%d more after one has ended", len(again))
	}
	lead := c.Manager.As(t, c.A.Lead)
	c.CreatePolicy(t, c.A.Lead, "half a cpu waits", managertest.Vars{"maxPendingSlots": managertest.Vars{"cpu": "0.5"}})
	if made, refused := many(lead, "0.2"); len(made) != 2 || !strings.Contains(refused.String(), "half a cpu waits") || refused[0].Extensions.Field != "slots" {
		t.Errorf("%d wait: %s", len(made), refused)
	}
}

// The current policy determines the lifetime of a session: one whose limit is raised before its end
// continues.
func TestLifetimeIsRaised(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	lead := c.Manager.As(t, c.A.Lead)
	raised := c.CreatePolicy(t, c.A.Member, "raised", managertest.Vars{"maxSessionLifetime": 3600})
	c.CreatePolicy(t, c.A.Lead, "kept", managertest.Vars{"maxSessionLifetime": 3600})
	lives := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	ends, errs := clustertest.TryCreate(t, lead, clustertest.SessionInput(nil, "sleep", "600"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, id := range []uuid.UUID{lives, ends} {
		c.WaitFor(t, id, lifecycle.Running)
	}
	c.UpdatePolicy(t, raised, managertest.Vars{"maxSessionLifetime": 7200})
	// An hour passes: first for the session that was going to end first.
	c.Client.Session.UpdateOneID(lives).SetStartedAt(time.Now().Add(-time.Hour - time.Minute)).ExecX(ctx)
	c.Client.Session.UpdateOneID(ends).SetStartedAt(time.Now().Add(-time.Hour)).ExecX(ctx)
	if s := c.WaitForEnd(t, ends); s.TerminationReason == nil || *s.TerminationReason != "lifetime" {
		t.Errorf("%s %v", s.Status, s.TerminationReason)
	}
	if s := c.Session(t, lives); s.Status != lifecycle.Running {
		t.Errorf("it is %s although its time was raised", s.Status)
	}
}
