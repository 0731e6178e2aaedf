package integration

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A model store contains only models: its administrators can write, and its members can read.
func TestAModelStore(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	var made struct {
		CreateProject struct{ Project struct{ ID uuid.UUID } }
	}
	c.Manager.As(t, c.Superadmin).Must(t, `mutation($in: CreateProjectInput!) { createProject(input: $in) { project { id } } }`,
		managertest.Vars{"in": managertest.Vars{"name": "zoo", "domain": c.A.ID, "type": "MODEL_STORE"}}, &made)
	store := made.CreateProject.Project.ID
	c.Client.Membership.Create().SetUserID(c.A.Member.ID).SetProjectID(store).ExecX(c.System(t))
	c.Client.Membership.Create().SetUserID(c.A.Loner.ID).SetProjectID(store).SetAdmin(true).ExecX(c.System(t))
	member, keeper := c.Manager.As(t, c.A.Member), c.Manager.As(t, c.A.Loner)

	for field, value := range map[string]string{"usageMode": "GENERAL", "permission": "READ_WRITE"} {
		_, errs := clustertest.CreateFolder(t, keeper, managertest.Vars{"name": "x", "project": store, field: value})
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != field {
			t.Errorf("created with %s %s: %s", field, value, errs)
		}
	}
	if _, errs := clustertest.CreateFolder(t, member, managertest.Vars{"name": "x", "project": store}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("created by a member: %s", errs)
	}
	f := filled(t, d, keeper, managertest.Vars{"name": "llama", "project": store}, 1)
	if f.UsageMode != vfolder.UsageModeModel || f.Permission != access.ReadOnly {
		t.Errorf("created as %s, %s", f.UsageMode, f.Permission)
	}
	other, errs := clustertest.CreateFolder(t, keeper, managertest.Vars{"name": "notes"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, _, errs := clone(t, keeper, managertest.Vars{"id": other, "name": "x", "project": store, "usageMode": "DATA"}); errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "usageMode" {
		t.Errorf("cloned into it as data: %s", errs)
	}
	to, job, errs := clone(t, keeper, managertest.Vars{"id": other, "name": "from-notes", "project": store})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ended(t, c, job)
	if got := d.FolderRow(t, to); got.UsageMode != vfolder.UsageModeModel || got.Permission != access.ReadOnly {
		t.Errorf("cloned as %s, %s", got.UsageMode, got.Permission)
	}
	for field, value := range map[string]string{"usageMode": "GENERAL", "permission": "READ_WRITE_DELETE"} {
		errs := keeper.Ask(t, `mutation($in: UpdateVfolderInput!) { updateVfolder(input: $in) { vfolder { id } } }`, managertest.Vars{"in": managertest.Vars{"id": f.ID, field: value}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != field {
			t.Errorf("changed to %s %s: %s", field, value, errs)
		}
	}
	share := managertest.Vars{"id": f.ID, "emails": []string{c.A.Member.Email}, "permission": "READ_WRITE"}
	errs = keeper.Ask(t, `mutation($in: ShareVfolderInput!) { shareVfolder(input: $in) { results { error } } }`, managertest.Vars{"in": share}, nil)
	if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "permission" {
		t.Errorf("shared for writing: %s", errs)
	}

	// The test writes to find out which users can.
	makeIn := `mutation($id: ID!, $path: String!) { createDirectories(input: {vfolder: $id, paths: [$path]}) { results { error } } }`
	if errs := member.Ask(t, makeIn, managertest.Vars{"id": f.ID, "path": "a"}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member writes: %s", errs)
	}
	if errs := keeper.Ask(t, makeIn, managertest.Vars{"id": f.ID, "path": "a"}, nil); len(errs) > 0 {
		t.Errorf("an administrator of the project writes: %s", errs)
	}
	member.Must(t, `mutation($id: ID!) { createDownload(input: {vfolder: $id, path: ""}) { url } }`, managertest.Vars{"id": f.ID}, nil)
	in := func(readOnly bool) managertest.Vars {
		return clustertest.SessionInput(managertest.Vars{"project": store, "mounts": []managertest.Vars{{"vfolder": f.ID, "readOnly": readOnly}}}, "true")
	}
	if _, errs := clustertest.TryCreate(t, member, in(false)); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member mounts it for writing: %s", errs)
	}
	id, errs := clustertest.TryCreate(t, member, in(true))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if m := c.Session(t, id).QueryMounts().OnlyX(c.System(t)); !m.ReadOnly || c.Session(t, id).Status != lifecycle.Pending {
		t.Errorf("mounted as %+v", m)
	}
}
