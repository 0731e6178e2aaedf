package manager_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
)

// policyFor makes a policy as a superadmin does, and binds a user by it.
func (c *cluster) policyFor(t *testing.T, u *ent.User, name string, limits managertest.Vars) (id uuid.UUID) {
	t.Helper()
	limits["name"] = name
	root := c.m.As(t, c.Superadmin)
	var made struct {
		CreateResourcePolicy struct{ Policy struct{ ID uuid.UUID } }
	}
	root.Must(t, `mutation($in: CreateResourcePolicyInput!) { createResourcePolicy(input: $in) { policy { id } } }`, managertest.Vars{"in": limits}, &made)
	id = made.CreateResourcePolicy.Policy.ID
	root.Must(t, `mutation($p: ID!, $u: ID!) { attachResourcePolicy(input: {policy: $p, user: $u}) { attachment { id } } }`,
		managertest.Vars{"p": id, "u": u.ID}, nil)
	return id
}

func (c *cluster) changePolicy(t *testing.T, id uuid.UUID, limits managertest.Vars) {
	t.Helper()
	limits["id"] = id
	c.m.As(t, c.Superadmin).Must(t, `mutation($in: UpdateResourcePolicyInput!) { updateResourcePolicy(input: $in) { policy { id } } }`, managertest.Vars{"in": limits}, nil)
}

// One preset is now for one caller, later for another and never for a third.
func TestPresetFitsPerCaller(t *testing.T) {
	c := newCluster(t, 1)
	root := c.m.As(t, c.Superadmin)
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
	c.policyFor(t, c.A.Member, "tenth", managertest.Vars{"totalSlots": managertest.Vars{"cpu": "0.1"}})
	held := c.create(t, input(managertest.Vars{"slots": managertest.Vars{"cpu": "0.08", "mem": "16m"}}, "sleep", "600"))
	c.reaches(t, held, lifecycle.Running)
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
		c.m.As(t, u).Must(t, `{ resourcePresets { edges { node { name fit`+args+` { state reason } } } } }`, nil, &out)
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
	c.end(t, held, true)
	c.over(t, held)
	if got := fits(c.A.Member, "")["small"]; got != "NOW" {
		t.Errorf("after the end of what was in its way: %s", got)
	}
}

// What waits is bounded, in number and in amounts, however many ask at once;
// the refusal names the policy, and what ends makes room.
func TestWaitingIsBounded(t *testing.T) {
	c := newCluster(t, 0)
	many := func(as *managertest.Client, amount string) (made []uuid.UUID, refused managertest.Errors) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			all.Go(func() {
				id, errs := tryCreate(t, as, input(managertest.Vars{"slots": managertest.Vars{"cpu": amount, "mem": "16m"}}, "sleep", "600"))
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
	c.policyFor(t, c.A.Member, "three wait", managertest.Vars{"maxPendingSessions": 3})
	made, refused := many(c.as, "0.05")
	if len(made) != 3 || !strings.Contains(refused.String(), "three wait") || refused[0].Extensions.Limit != "3" {
		t.Errorf("%d wait: %s", len(made), refused)
	}
	c.end(t, made[0], true)
	c.over(t, made[0])
	if again, _ := many(c.as, "0.05"); len(again) != 1 {
		t.Errorf("%d more after one has ended", len(again))
	}
	lead := c.m.As(t, c.A.Lead)
	c.policyFor(t, c.A.Lead, "half a cpu waits", managertest.Vars{"maxPendingSlots": managertest.Vars{"cpu": "0.5"}})
	if made, refused := many(lead, "0.2"); len(made) != 2 || !strings.Contains(refused.String(), "half a cpu waits") || refused[0].Extensions.Field != "slots" {
		t.Errorf("%d wait: %s", len(made), refused)
	}
}

// The number of folders is kept however many are asked for at once, and the
// bytes of a quota scope at the upload.
func TestFoldersAreBounded(t *testing.T) {
	c := newCluster(t, 0)
	d := newDepot(t, c)
	if _, errs := folder(t, c.as, managertest.Vars{"name": "first"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	id := c.policyFor(t, c.A.Member, "three folders", managertest.Vars{"maxVfolders": 3, "maxScopeBytes": 200_000})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, errs := folder(t, c.as, managertest.Vars{"name": fmt.Sprint("more", i)}); len(errs) > 0 &&
				(errs.Code() != "RESOURCE_EXHAUSTED" || !strings.Contains(errs.String(), "three folders") || errs[0].Extensions.Limit != "3") {
				t.Error(errs)
			}
		})
	}
	all.Wait()
	mine := d.Client.Vfolder.Query().Where(vfolder.OwnerID(c.A.Member.ID), vfolder.DeletedAtIsNil()).AllX(d.System(t))
	if len(mine) != 3 {
		t.Fatalf("%d folders", len(mine))
	}
	if _, errs := folder(t, c.m.As(t, c.A.Lead), managertest.Vars{"name": "anothers"}); len(errs) > 0 {
		t.Errorf("another's folder: %s", errs)
	}
	upload := func(size int) int {
		t.Helper()
		var up struct {
			CreateUpload struct {
				Uploads []struct{ URL, Ticket string }
			}
		}
		c.as.Must(t, `mutation($id: ID!, $n: Int64!) { createUpload(input: {vfolder: $id, files: [{path: "f", size: $n}]}) { uploads { url ticket } } }`,
			managertest.Vars{"id": mine[0].ID, "n": size}, &up)
		r, _ := http.NewRequestWithContext(t.Context(), "POST", up.CreateUpload.Uploads[0].URL, nil)
		r.Header = http.Header{"Authorization": {"Bearer " + up.CreateUpload.Uploads[0].Ticket}, "Tus-Resumable": {"1.0.0"}, "Upload-Length": {fmt.Sprint(size)}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	managertest.Eventually(t, "the proxy keeps the limit", func() bool { return upload(300_000) == http.StatusInsufficientStorage })
	if status := upload(50_000); status != http.StatusCreated {
		t.Errorf("below the limit: %d", status)
	}
	c.as.Must(t, trashFolder, managertest.Vars{"id": mine[1].ID}, nil)
	if _, errs := folder(t, c.as, managertest.Vars{"name": "in-its-place"}); len(errs) > 0 {
		t.Errorf("in place of a deleted one: %s", errs)
	}
	if errs := c.as.Ask(t, `mutation($id: ID!) { restoreVfolder(input: {id: $id}) { vfolder { id } } }`, managertest.Vars{"id": mine[1].ID}, nil); errs.Code() != "RESOURCE_EXHAUSTED" {
		t.Errorf("back from the trash beyond the limit: %s", errs)
	}
	c.changePolicy(t, id, managertest.Vars{"maxVfolders": 1, "maxScopeBytes": 2_000_000}) // what is there stays
	if n := d.Client.Vfolder.Query().Where(vfolder.OwnerID(c.A.Member.ID), vfolder.DeletedAtIsNil()).CountX(d.System(t)); n != 3 {
		t.Errorf("%d folders after the limit was lowered", n)
	}
	managertest.Eventually(t, "the proxy knows the raised limit", func() bool { return upload(300_000) == http.StatusCreated })
}

// A session lives as long as its policy lets it as the policy is now: one whose
// time is raised before its end lives on.
func TestLifetimeIsRaised(t *testing.T) {
	c := newCluster(t, 1)
	ctx := c.System(t)
	lead := c.m.As(t, c.A.Lead)
	raised := c.policyFor(t, c.A.Member, "raised", managertest.Vars{"maxSessionLifetime": 3600})
	c.policyFor(t, c.A.Lead, "kept", managertest.Vars{"maxSessionLifetime": 3600})
	lives := c.create(t, input(nil, "sleep", "600"))
	ends, errs := tryCreate(t, lead, input(nil, "sleep", "600"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, id := range []uuid.UUID{lives, ends} {
		c.reaches(t, id, lifecycle.Running)
	}
	c.changePolicy(t, raised, managertest.Vars{"maxSessionLifetime": 7200})
	// An hour goes by: first for the one that would have ended first.
	c.Client.Session.UpdateOneID(lives).SetStartedAt(time.Now().Add(-time.Hour - time.Minute)).ExecX(ctx)
	c.Client.Session.UpdateOneID(ends).SetStartedAt(time.Now().Add(-time.Hour)).ExecX(ctx)
	if s := c.over(t, ends); s.TerminationReason == nil || *s.TerminationReason != "lifetime" {
		t.Errorf("%s %v", s.Status, s.TerminationReason)
	}
	if s := c.session(t, lives); s.Status != lifecycle.Running {
		t.Errorf("it is %s although its time was raised", s.Status)
	}
}
