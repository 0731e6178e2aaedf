package integration

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const setGrant = `mutation($in: GrantVolumeInput!) { grantVolume(input: $in) { grant { id permissions } } }`

// grant replaces a grant on the volume and returns its id.
func grant(t *testing.T, d *clustertest.Proxy, in managertest.Vars, permissions ...access.VolumePermission) uuid.UUID {
	t.Helper()
	names := make([]string, len(permissions))
	for i, p := range permissions {
		names[i] = strings.ToUpper(string(p))
	}
	in["volume"], in["permissions"] = d.Client.Volume.Query().OnlyIDX(d.System(t)), names
	var got struct {
		GrantVolume struct{ Grant struct{ ID uuid.UUID } }
	}
	d.Manager.As(t, d.Superadmin).Must(t, setGrant, managertest.Vars{"in": in}, &got)
	return got.GrantVolume.Grant.ID
}

// Without its permission, an operation is refused for every user, including the superadmin. All
// other operations continue.
func TestVolumePermissions(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	if n := d.Client.VolumeGrant.Query().CountX(d.System(t)); n != 1 {
		t.Fatalf("a new volume has %d grants", n)
	}
	id, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	vars := managertest.Vars{"id": id}
	ask := func(query string) func() managertest.Errors {
		return func() managertest.Errors { return c.Member.Ask(t, query, vars, nil) }
	}
	mount := func(readOnly bool) func() managertest.Errors {
		return func() managertest.Errors {
			in := clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": id.String(), "readOnly": readOnly}}}, "true")
			made, errs := clustertest.TryCreate(t, c.Member, in)
			if len(errs) == 0 {
				c.Terminate(t, made, true)
			}
			return errs
		}
	}
	operations := []struct {
		name string
		need []access.VolumePermission
		do   func() managertest.Errors
	}{
		{"create", []access.VolumePermission{access.VolumeCreate}, func() managertest.Errors {
			_, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "f" + uuid.NewString()[:8]})
			return errs
		}},
		{"create as superadmin", []access.VolumePermission{access.VolumeCreate}, func() managertest.Errors {
			_, errs := clustertest.CreateFolder(t, c.Manager.As(t, c.Superadmin), managertest.Vars{"name": "f" + uuid.NewString()[:8]})
			return errs
		}},
		{"rename", []access.VolumePermission{access.VolumeModify}, ask(`mutation($id: ID!) { updateVfolder(input: {id: $id, name: "data"}) { vfolder { id } } }`)},
		{"delete", []access.VolumePermission{access.VolumeDelete}, func() managertest.Errors {
			// Each call deletes a new folder, which no session mounts.
			other := d.Client.Vfolder.GetX(d.System(t), id)
			f := d.Client.Vfolder.Create().SetName("x" + uuid.NewString()[:8]).SetDomainID(other.DomainID).SetNillableOwnerID(other.OwnerID).
				SetCreatorID(other.CreatorID).SetQuotaScopeID(other.QuotaScopeID).SetPath(other.Path + "x").SaveX(d.System(t))
			return c.Member.Ask(t, trashFolder, managertest.Vars{"id": f.ID}, nil)
		}},
		{"mount read-only", []access.VolumePermission{access.VolumeMount}, mount(true)},
		{"mount", []access.VolumePermission{access.VolumeMount, access.VolumeUpload}, mount(false)},
		{"upload", []access.VolumePermission{access.VolumeUpload}, ask(`mutation($id: ID!) { createUpload(input: {vfolder: $id, files: [{path: "a", size: 1}]}) { uploads { path } } }`)},
		{"make a directory", []access.VolumePermission{access.VolumeUpload}, ask(`mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["dir"]}) { results { error } } }`)},
		{"delete files", []access.VolumePermission{access.VolumeUpload}, ask(`mutation($id: ID!) { deleteFiles(input: {vfolder: $id, paths: ["none"]}) { results { path } } }`)},
		{"download", []access.VolumePermission{access.VolumeDownload}, ask(`mutation($id: ID!) { createDownload(input: {vfolder: $id, path: ""}) { url } }`)},
	}
	for _, missing := range access.VolumePermissions() {
		var rest []access.VolumePermission
		for _, p := range access.VolumePermissions() {
			if p != missing {
				rest = append(rest, p)
			}
		}
		grant(t, d, managertest.Vars{}, rest...)
		for _, op := range operations {
			t.Run("without "+string(missing)+" "+op.name, func(t *testing.T) {
				errs, refused := op.do(), false
				for _, n := range op.need {
					refused = refused || n == missing
				}
				if !refused && len(errs) > 0 {
					t.Fatal(errs)
				}
				if refused && (errs.Code() != "PERMISSION_DENIED" || !strings.Contains(errs.String(), "main") || !strings.Contains(errs.String(), string(missing))) {
					t.Errorf("%q: %s", errs.Code(), errs)
				}
			})
		}
	}
}

// The grants of everyone, the domain, the project and the user add up.
func TestVolumeGrantsAddUp(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	const mine = `query($p: ID) { volumes { edges { node { myPermissions(project: $p) } } } }`
	see := func(as *managertest.Client, project any) (list []string) {
		t.Helper()
		var got struct {
			Volumes struct {
				Edges []struct {
					Node struct{ MyPermissions []string }
				}
			}
		}
		as.Must(t, mine, managertest.Vars{"p": project}, &got)
		return got.Volumes.Edges[0].Node.MyPermissions
	}
	member := c.Manager.As(t, c.A.Member)
	grant(t, d, managertest.Vars{})
	if got := see(member, nil); len(got) != 0 {
		t.Errorf("nothing granted: %v", got)
	}
	one := grant(t, d, managertest.Vars{"domain": c.A.ID}, access.VolumeMount)
	grant(t, d, managertest.Vars{"user": c.A.Member.ID}, access.VolumeUpload)
	grant(t, d, managertest.Vars{"project": c.A.Project.ID}, access.VolumeDownload)
	if got := strings.Join(see(member, nil), " "); got != "MOUNT UPLOAD" {
		t.Errorf("in no project: %q", got)
	}
	if got := strings.Join(see(member, c.A.Project.ID), " "); got != "MOUNT UPLOAD DOWNLOAD" {
		t.Errorf("in the project: %q", got)
	}
	if got := see(c.Manager.As(t, c.B.Member), nil); len(got) != 0 {
		t.Errorf("in another domain: %v", got)
	}
	const remove = `mutation($id: ID!) { revokeVolume(input: {id: $id}) { volume { id } } }`
	if errs := member.Ask(t, remove, managertest.Vars{"id": one}, nil); len(errs) == 0 {
		t.Error("a member takes a grant away")
	}
	c.Manager.As(t, c.Superadmin).Must(t, remove, managertest.Vars{"id": one}, nil)
	if got := strings.Join(see(member, nil), " "); got != "UPLOAD" {
		t.Errorf("without the domain's: %q", got)
	}
}
