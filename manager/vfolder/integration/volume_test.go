package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// The folders on a volume are compared with the rows in the database.
func TestOrphans(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	known, lost := filled(t, d, c.Member, managertest.Vars{"name": "known"}, 1), filled(t, d, c.Member, managertest.Vars{"name": "lost"}, 1)
	if err := os.RemoveAll(filepath.Join(d.Root, lost.Path)); err != nil {
		t.Fatal(err)
	}
	scope, folder := uuid.New(), uuid.NewString()
	plain := func(id string) string { return strings.ReplaceAll(id, "-", "") }
	at := func(scope uuid.UUID, id string) string { // the path of a folder, as the proxy lays folders out
		parts := strings.Split(known.Path, "/")
		parts[0] = strings.ReplaceAll(parts[0], plain(c.A.Member.ID.String()), plain(scope.String()))
		id = plain(id)
		return filepath.Join(d.Root, parts[0], id[:2], id[2:4], id[4:])
	}
	if want := filepath.Join(d.Root, known.Path); at(c.A.Member.ID, known.ID.String()) != want {
		t.Fatalf("%s is not %s", at(c.A.Member.ID, known.ID.String()), want)
	}
	for _, dir := range []string{at(scope, folder), at(c.A.Member.ID, uuid.NewString())} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	type answer struct {
		Volumes struct {
			Edges []struct {
				Node struct {
					Proxy   string
					Orphans struct {
						Complete bool
						Scopes   []struct{ Scope string }
						Folders  []struct{ State, Scope, Folder string }
						Missing  []struct{ ID uuid.UUID }
					}
				}
			}
		}
	}
	var got answer
	const query = `{ volumes { edges { node { proxy orphans { complete scopes { scope } folders { state scope folder } missing { id } } } } } }`
	c.Manager.As(t, c.Superadmin).Must(t, query, nil, &got)
	o := got.Volumes.Edges[0].Node.Orphans
	if got.Volumes.Edges[0].Node.Proxy != "s1" || !o.Complete || len(o.Scopes) != 1 || o.Scopes[0].Scope != scope.String() {
		t.Errorf("%+v", got)
	}
	if len(o.Folders) != 2 || o.Folders[0].State != "PRESENT" {
		t.Errorf("folders: %+v", o.Folders)
	}
	if len(o.Missing) != 1 || o.Missing[0].ID != lost.ID {
		t.Errorf("missing: %+v", o.Missing)
	}
	if errs := c.Manager.As(t, c.A.Admin).Ask(t, query, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a domain admin: %s", errs)
	}

	// A folder that has a row is not removed, nor is a quota scope before its folders.
	vol := c.Client.Volume.Query().OnlyX(c.System(t)).ID
	remove := func(scope, folder any) (uuid.UUID, managertest.Errors) {
		var made struct {
			DeleteOrphan struct{ Task struct{ ID uuid.UUID } }
		}
		errs := c.Manager.As(t, c.Superadmin).Ask(t, `mutation($in: DeleteOrphanInput!) { deleteOrphan(input: $in) { task { id } } }`,
			managertest.Vars{"in": managertest.Vars{"volume": vol, "scope": scope, "folder": folder}}, &made)
		return made.DeleteOrphan.Task.ID, errs
	}
	for field, of := range map[string][2]any{"folder": {c.A.Member.ID, known.ID}, "scope": {c.A.Member.ID, nil}} {
		if _, errs := remove(of[0], of[1]); errs.Code() != "FAILED_PRECONDITION" || errs[0].Extensions.Field != field {
			t.Errorf("%s that is known: %s", field, errs)
		}
	}
	for _, one := range []struct {
		name   string
		folder any
		want   task.Status
	}{{"a scope with a folder", nil, task.StatusFailed}, {"the folder", folder, task.StatusDone}, {"the scope", nil, task.StatusDone}, {"it again", nil, task.StatusDone}} {
		job, errs := remove(scope, one.folder)
		if len(errs) > 0 {
			t.Fatalf("%s: %s", one.name, errs)
		}
		if done := ended(t, c, job); done.Status != one.want {
			t.Errorf("%s: %v", one.name, done)
		}
	}
	got = answer{}
	c.Manager.As(t, c.Superadmin).Must(t, query, nil, &got)
	if o := got.Volumes.Edges[0].Node.Orphans; len(o.Scopes) != 0 || len(o.Folders) != 1 || o.Folders[0].Scope != c.A.Member.ID.String() {
		t.Errorf("after the removal: %+v", o)
	}
	if n := files(t, d, known); n != 1 {
		t.Errorf("the known folder has %d files", n)
	}
}

// Two proxies serve one volume, and each of them can serve a request.
func TestTwoProxiesOfAVolume(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 10)
	second := clustertest.NewProxyOf(t, c, "s2", storage.VolumeConfig{Name: "main", MountPath: d.Root})
	if n := c.Client.Volume.Query().CountX(c.System(t)); n != 1 {
		t.Fatalf("%d volumes", n)
	}
	list := func() bool {
		var got struct {
			Node struct {
				Files *struct{ Files []struct{ Name string } }
			}
		}
		errs := c.Member.Ask(t, `query($id: ID!) { node(id: $id) { ... on Vfolder { files { files { name } } } } }`, managertest.Vars{"id": f.ID}, &got)
		return len(errs) == 0 && len(got.Node.Files.Files) == 1
	}
	for i, one := range []*clustertest.Proxy{d, second} {
		one.Stop()
		managertest.Eventually(t, "the other one serves it", list)
		_, job, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "copy" + string(rune('a'+i))})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := ended(t, c, job); got.Status != task.StatusDone {
			t.Errorf("%v", got)
		}
		one.StartProxy(t, nil)
		managertest.Eventually(t, "files are listed", list)
	}
}

// A limit of the quota scope overrides the policies. nil restores the limit of the policies, and
// zero is a limit of zero.
func TestAScopeHasALimitOfItsOwn(t *testing.T) {
	c := clustertest.New(t, 0)
	clustertest.NewProxy(t, c)
	admin := c.Manager.As(t, c.A.Admin)
	vol := c.Client.Volume.Query().OnlyX(c.System(t))
	const set = `mutation($in: SetQuotaScopeInput!) { setQuotaScope(input: $in) { quotaScope { limitBytes effectiveLimitBytes holderUser { id } holderProject { id } } } }`
	type answer struct {
		SetQuotaScope struct {
			QuotaScope struct {
				LimitBytes, EffectiveLimitBytes *int64
				HolderUser, HolderProject       *struct{ ID uuid.UUID }
			}
		}
	}
	policy := c.Client.ResourcePolicy.Create().SetName("small").SetMaxScopeBytes(1000).SaveX(c.System(t))
	c.Client.PolicyAttachment.Create().SetPolicy(policy).SetUser(c.A.Member).ExecX(c.System(t))
	for _, one := range []struct {
		own  any
		want int64
	}{{nil, 1000}, {5000, 5000}, {0, 0}, {nil, 1000}} {
		var got answer
		admin.Must(t, set, managertest.Vars{"in": managertest.Vars{"volume": vol.ID, "user": c.A.Member.ID, "limitBytes": one.own}}, &got)
		q := got.SetQuotaScope.QuotaScope
		if q.EffectiveLimitBytes == nil || *q.EffectiveLimitBytes != one.want || (q.LimitBytes == nil) != (one.own == nil) {
			t.Errorf("own %v: %+v", one.own, q)
		}
		if q.HolderUser == nil || q.HolderUser.ID != c.A.Member.ID || q.HolderProject != nil {
			t.Errorf("of %+v", q)
		}
	}
	set1 := func(in managertest.Vars) managertest.Errors {
		in["volume"], in["user"] = vol.ID, c.A.Member.ID
		return admin.Ask(t, set, managertest.Vars{"in": in}, nil)
	}
	// This volume does not count files. A refused request changes nothing.
	errs := set1(managertest.Vars{"limitBytes": 7, "limitInodes": 7})
	if errs.Code() != "FAILED_PRECONDITION" || errs[0].Extensions.Field != "limitInodes" || !strings.Contains(errs[0].Message, "it can limit bytes") {
		t.Errorf("a limit that the volume cannot keep: %s", errs)
	}
	if errs := set1(managertest.Vars{"limitInodes": -1}); errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "limitInodes" {
		t.Errorf("less than no file: %s", errs)
	}
	if s := c.Client.QuotaScope.Query().Where(quotascope.HolderID(c.A.Member.ID)).OnlyX(c.System(t)); s.LimitBytes != nil || s.LimitInodes != nil {
		t.Errorf("after limits that were refused: %v", s)
	}
	for name, in := range map[string]managertest.Vars{
		"nobody":   {"volume": vol.ID, "limitBytes": 1},
		"negative": {"volume": vol.ID, "user": c.A.Member.ID, "limitBytes": -1},
	} {
		if errs := admin.Ask(t, set, managertest.Vars{"in": in}, nil); errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("%s: %s", name, errs)
		}
	}
	if errs := admin.Ask(t, set, managertest.Vars{"in": managertest.Vars{"volume": vol.ID, "user": c.B.Member.ID, "limitBytes": 1}}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("of another domain: %s", errs)
	}
	if errs := c.Member.Ask(t, set, managertest.Vars{"in": managertest.Vars{"volume": vol.ID, "user": c.A.Member.ID, "limitBytes": 1 << 40}}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("by himself: %s", errs)
	}
	admin.Must(t, set, managertest.Vars{"in": managertest.Vars{"volume": vol.ID, "user": c.A.Member.ID, "limitBytes": 10}}, nil)
	scope := c.Client.QuotaScope.Query().Where(quotascope.HolderID(c.A.Member.ID)).OnlyX(c.System(t))
	c.Client.QuotaScope.UpdateOne(scope).SetUsedBytes(10).ExecX(c.System(t))
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "more"}); errs.Code() != "RESOURCE_EXHAUSTED" {
		t.Errorf("a folder in a full scope: %s", errs)
	}
}

// Files are created, moved, copied and deleted in one request, with one result for each.
func TestManyFilesAtATime(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	a, b := filled(t, d, c.Member, managertest.Vars{"name": "a"}, 3), filled(t, d, c.Member, managertest.Vars{"name": "b"}, 0)
	type results struct {
		Done struct {
			Results []struct {
				Path  string
				Error *string
			}
		}
	}
	ask := func(what, input string, in managertest.Vars, want ...bool) {
		t.Helper()
		var got results
		c.Member.Must(t, "mutation($in: "+input+"!) { done: "+what+"(input: $in) { results { path error } } }", managertest.Vars{"in": in}, &got)
		if len(got.Done.Results) != len(want) {
			t.Fatalf("%s: %+v", what, got)
		}
		for i, r := range got.Done.Results {
			if (r.Error == nil) != want[i] {
				t.Errorf("%s %s: %v", what, r.Path, r.Error)
			}
		}
	}
	ask("createDirectories", "CreateDirectoriesInput", managertest.Vars{"vfolder": a.ID, "paths": []string{"x/y", "0/1", "z"}}, true, false, true)
	ask("moveFiles", "MoveFilesInput", managertest.Vars{"vfolder": a.ID, "toVfolder": b.ID,
		"items": []managertest.Vars{{"from": "0/0", "to": "0"}, {"from": "none", "to": "n"}}}, true, false)
	ask("deleteFiles", "DeleteFilesInput", managertest.Vars{"vfolder": a.ID, "paths": []string{"x", "0/2"}}, false, true)
	ask("deleteFiles", "DeleteFilesInput", managertest.Vars{"vfolder": a.ID, "paths": []string{"x"}, "recursive": true}, true)

	var got struct {
		CopyFiles struct{ Task struct{ ID uuid.UUID } }
	}
	const copyFiles = `mutation($in: CopyFilesInput!) { copyFiles(input: $in) { task { id } vfolder { id } } }`
	c.Member.Must(t, copyFiles, managertest.Vars{"in": managertest.Vars{"vfolder": a.ID, "toVfolder": b.ID,
		"items": []managertest.Vars{{"from": "0/1", "to": "1"}, {"from": "none", "to": "n"}}}}, &got)
	if job := ended(t, c, got.CopyFiles.Task.ID); job.Status != task.StatusFailed || !strings.Contains(job.Message, "1 of 2 items") || !strings.Contains(job.Message, "none") {
		t.Errorf("%v", job)
	}
	if n := files(t, d, b); n != 2 {
		t.Errorf("%d files", n)
	}
	var found struct {
		Node struct {
			Search struct{ Files []struct{ Path string } }
		}
	}
	c.Member.Must(t, `query($id: ID!) { node(id: $id) { ... on Vfolder { search(text: "Z") { files { path } } } } }`, managertest.Vars{"id": a.ID}, &found)
	if list := found.Node.Search.Files; len(list) != 1 || list[0].Path != "z" {
		t.Errorf("found %v", list)
	}
}

// An admin transfers a folder to another user.
func TestAFolderIsHandedOver(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 5)
	const handOver = `mutation($id: ID!, $user: ID!) { handOverVfolder(input: {id: $id, user: $user}) { task { id } } }`
	vars := managertest.Vars{"id": f.ID, "user": c.A.Loner.ID}
	admin := c.Manager.As(t, c.A.Admin)
	refused := func(what string, as *managertest.Client, to uuid.UUID, code string) {
		t.Helper()
		if errs := as.Ask(t, handOver, managertest.Vars{"id": f.ID, "user": to}, nil); errs.Code() != code {
			t.Errorf("%s: %s", what, errs)
		}
	}
	refused("by its owner", c.Member, c.A.Loner.ID, "PERMISSION_DENIED")
	refused("to another domain", c.Manager.As(t, c.Superadmin), c.B.Member.ID, "NOT_FOUND")
	c.Client.User.UpdateOne(c.A.Lead).SetStatus(user.StatusInactive).ExecX(c.System(t))
	refused("to who is not active", admin, c.A.Lead.ID, "FAILED_PRECONDITION")
	mounts, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": f.ID.String()}}}, "exit", "0"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	refused("while a session that waits is to mount it", admin, c.A.Loner.ID, "FAILED_PRECONDITION")
	c.Terminate(t, mounts, true)
	c.WaitForEnd(t, mounts)
	if _, errs := clustertest.CreateFolder(t, c.Manager.As(t, c.A.Loner), managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	var got struct {
		HandOverVfolder struct{ Task struct{ ID uuid.UUID } }
	}
	admin.Must(t, handOver, vars, &got)
	if job := ended(t, c, got.HandOverVfolder.Task.ID); job.Status != task.StatusDone {
		t.Fatalf("%v", job)
	}
	after := d.FolderRow(t, f.ID)
	if *after.OwnerID != c.A.Loner.ID || after.Name != "data-2" || after.Path == f.Path || after.Status != vfolder.StatusReady || files(t, d, after) != 5 {
		t.Errorf("%v", after)
	}
}
