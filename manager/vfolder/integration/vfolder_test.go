package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const (
	trashFolder  = `mutation($id: ID!) { trashVfolder(input: {id: $id}) { vfolder { status } } }`
	deleteFolder = `mutation($id: ID!) { deleteVfolder(input: {id: $id}) { vfolder { status } task { id } } }`
)

func TestFolderFromBeginToEnd(t *testing.T) {
	c := clustertest.New(t, 1)
	d := clustertest.NewProxy(t, c)
	id, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(d.Root, d.FolderRow(t, id).Path)
	if st, err := os.Stat(path); err != nil || !st.IsDir() || d.FolderRow(t, id).Path == "" {
		t.Fatalf("folder at %q: %v", path, err)
	}
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"}); errs.Code() != "ALREADY_EXISTS" {
		t.Errorf("a second folder of the name: %s", errs)
	}
	for _, name := range []string{"../x", "..", "", "a/b", "-rf", "ünï", strings.Repeat("x", 65), "a\x00b"} {
		if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": name}); errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "name" {
			t.Errorf("name %q: %s", name, errs)
		}
	}
	transfer(t, d, id)

	// A session that waits for its agent to report the volume mounts the folder: the deletion is
	// refused.
	session := c.Create(t, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": "data"}}}, "sleep", "600"))
	if errs := c.Member.Ask(t, trashFolder, managertest.Vars{"id": id}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("trash while mounted: %s", errs)
	}
	c.Terminate(t, session, true)
	c.WaitForEnd(t, session)

	c.Member.Must(t, `mutation($id: ID!) { updateVfolder(input: {id: $id, name: "other"}) { vfolder { name } } }`, managertest.Vars{"id": id}, nil)
	if errs := c.Member.Ask(t, deleteFolder, managertest.Vars{"id": id}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("delete a folder that is not in the trash: %s", errs)
	}
	c.Member.Must(t, trashFolder, managertest.Vars{"id": id}, nil)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "other"}); len(errs) > 0 {
		t.Errorf("the name is not free: %s", errs)
	}
	const restore = `mutation($in: RestoreVfolderInput!) { restoreVfolder(input: $in) { vfolder { name status deletedAt } } }`
	if errs := c.Member.Ask(t, restore, managertest.Vars{"in": managertest.Vars{"id": id}}, nil); errs.Code() != "ALREADY_EXISTS" || errs[0].Extensions.Field != "name" {
		t.Errorf("restore under a name that is taken: %s", errs)
	}
	c.Member.Must(t, restore, managertest.Vars{"in": managertest.Vars{"id": id, "name": "again"}}, nil)
	if f := d.FolderRow(t, id); f.Status != vfolder.StatusReady || f.DeletedAt != nil || f.Name != "again" {
		t.Errorf("restored: %v", f)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	c.Member.Must(t, trashFolder, managertest.Vars{"id": id}, nil)
	c.Member.Must(t, deleteFolder, managertest.Vars{"id": id}, nil)
	managertest.Eventually(t, "data is deleted", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err) && d.FolderRow(t, id).Status == vfolder.StatusDeleted
	})
	if errs := c.Member.Ask(t, deleteFolder, managertest.Vars{"id": id}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("delete again: %s", errs)
	}
	c.CheckInvariants(t, true)
}

// transfer uploads a file with a ticket, and checks that the ticket permits nothing else.
func transfer(t *testing.T, d *clustertest.Proxy, id uuid.UUID) {
	t.Helper()
	var up struct {
		CreateUpload struct {
			Uploads []struct{ URL, Ticket, Path string }
		}
	}
	const createUpload = `mutation($id: ID!, $files: [UploadFileInput!]!) { createUpload(input: {vfolder: $id, files: $files}) { uploads { path url ticket } } }`
	d.Member.Must(t, createUpload, managertest.Vars{"id": id, "files": []managertest.Vars{{"path": "in/a.txt", "size": 5}}}, &up)
	target := up.CreateUpload.Uploads[0]
	ask := func(method, url string, header map[string]string, body string) *http.Response {
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+target.Ticket)
		r.Header.Set("Tus-Resumable", "1.0.0")
		for k, v := range header {
			r.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := ask(http.MethodPost, target.URL, map[string]string{"Upload-Length": "6"}, ""); resp.StatusCode < 400 {
		t.Errorf("another size than the ticket's: %d", resp.StatusCode)
	}
	resp := ask(http.MethodPost, target.URL, map[string]string{"Upload-Length": "5"}, "")
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("begin upload: %d", resp.StatusCode)
	}
	where, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	resp = ask(http.MethodPatch, where.String(), map[string]string{"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}, "hello")
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("upload: %d", resp.StatusCode)
	}
	var down struct{ CreateDownload struct{ URL string } }
	d.Member.Must(t, `mutation($id: ID!) { createDownload(input: {vfolder: $id, path: "in/a.txt"}) { url } }`, managertest.Vars{"id": id}, &down)
	resp, err = http.Get(down.CreateDownload.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello" {
		t.Errorf("download: %d %q", resp.StatusCode, body)
	}
	// A path that the proxy would refuse gets no ticket either.
	for _, path := range []string{
		"../x", "/etc/passwd", "a/../../b", "", "a\x00", "a\nb", "a\u0085b", "half \ufffd", strings.Repeat("n", 256),
		strings.Repeat("d/", 512) + "f",
	} {
		errs := d.Member.Ask(t, createUpload, managertest.Vars{"id": id, "files": []managertest.Vars{{"path": path, "size": 1}}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("upload to %q: %s", path, errs)
		}
	}
	if errs := d.Member.Ask(t, createUpload, managertest.Vars{"id": id, "files": []managertest.Vars{{"path": "x", "size": int64(1) << 50}}}, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("a PiB: %s", errs)
	}
}

// The operations that each user can perform on a user's folder and on a project's folder.
func TestWhoMayTouchAFolder(t *testing.T) {
	c := clustertest.New(t, 0)
	clustertest.NewProxy(t, c)
	people := map[string]*managertest.Client{
		"member": c.Member, "lead": c.Manager.As(t, c.A.Lead), "domain admin": c.Manager.As(t, c.A.Admin), "stranger": c.Manager.As(t, c.B.Admin),
		"monitor": c.Manager.As(t, c.Monitor), "superadmin": c.Manager.As(t, c.Superadmin), "loner": c.Manager.As(t, c.A.Loner),
	}
	own, errs := clustertest.CreateFolder(t, people["member"], managertest.Vars{"name": "own"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	shared, errs := clustertest.CreateFolder(t, people["lead"], managertest.Vars{"name": "shared", "project": c.A.Project.ID})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, errs := clustertest.CreateFolder(t, people["member"], managertest.Vars{"name": "mine", "project": c.A.Project.ID}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member makes a project's folder: %s", errs)
	}
	if _, errs := clustertest.CreateFolder(t, people["monitor"], managertest.Vars{"name": "mine"}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a monitor makes a folder: %s", errs)
	}
	operations := []struct{ name, query string }{
		{"see", `query($id: ID!) { node(id: $id) { ... on Vfolder { name } } }`},
		{"list", `query($id: ID!) { node(id: $id) { ... on Vfolder { files { files { name } } } } }`},
		{"write", `mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["d"]}) { results { error } } }`},
		{"rename", `mutation($id: ID!) { updateVfolder(input: {id: $id, name: "renamed"}) { vfolder { id } } }`},
	}
	const (
		yes  = ""
		no   = "PERMISSION_DENIED"
		null = "NOT_FOUND"
	)
	for who, want := range map[string]map[uuid.UUID][4]string{
		"member":       {own: {yes, yes, yes, yes}, shared: {yes, yes, yes, no}},
		"lead":         {own: {null, null, null, null}, shared: {yes, yes, yes, yes}},
		"domain admin": {own: {yes, no, no, yes}, shared: {yes, no, no, yes}},
		"superadmin":   {own: {yes, no, no, yes}, shared: {yes, no, no, yes}},
		"monitor":      {own: {yes, no, no, no}, shared: {yes, no, no, no}},
		"stranger":     {own: {null, null, null, null}, shared: {null, null, null, null}},
		"loner":        {own: {null, null, null, null}, shared: {null, null, null, null}},
	} {
		for id, codes := range want {
			for i, op := range operations {
				var got struct{ Node any }
				errs := people[who].Ask(t, op.query, managertest.Vars{"id": id}, &got)
				code := errs.Code()
				if i < 2 && code == "" && got.Node == nil {
					code = null
				}
				if code == "ALREADY_EXISTS" && op.name == "write" {
					code = yes // another user deleted it first
				}
				if code != codes[i] {
					t.Errorf("%s %ss %s: %q, want %q (%s)", who, op.name, map[bool]string{true: "own", false: "shared"}[id == own], code, codes[i], errs)
				}
			}
		}
	}
}

func TestFilesOfManyFolders(t *testing.T) {
	c := clustertest.New(t, 0)
	clustertest.NewProxy(t, c)
	for i := range 6 {
		if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": fmt.Sprint("data", i)}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	count := func(n int) int {
		reads := 0
		for _, q := range c.Statements.Of(func() {
			c.Member.Must(t, `query($n: Int) { vfolders(first: $n) { edges { node { files { files { name } } } } } }`, managertest.Vars{"n": n}, nil)
		}) {
			if strings.Contains(q, `FROM "vfolders"`) {
				reads++
			}
		}
		return reads
	}
	few, many := count(2), count(6)
	for range 30 { // the minimum leaves out the reads of the leader, which happen at any time
		few, many = min(few, count(2)), min(many, count(6))
	}
	if many > few {
		t.Errorf("2 folders cost %d reads of folders, 6 cost %d", few, many)
	}
}

// A deletion that has no connected proxy continues when a proxy connects.
func TestDeletionIsResumed(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	id, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	path := filepath.Join(d.Root, d.FolderRow(t, id).Path)
	d.Stop()
	c.Member.Must(t, trashFolder, managertest.Vars{"id": id}, nil)
	c.Member.Must(t, deleteFolder, managertest.Vars{"id": id}, nil)
	if s := d.FolderRow(t, id).Status; s != vfolder.StatusDeleting {
		t.Fatalf("%s", s)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	d.StartProxy(t, nil)
	managertest.Eventually(t, "data is deleted", func() bool {
		_, err := os.Stat(path)
		return os.IsNotExist(err) && d.FolderRow(t, id).Status == vfolder.StatusDeleted
	})
}

// A session is created while its folder is deleted. One of the two requests succeeds.
func TestDeleteWhileASessionIsMade(t *testing.T) {
	c := clustertest.New(t, 1)
	clustertest.NewProxy(t, c)
	for i := range 10 {
		id, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": fmt.Sprint("data", i)})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var session uuid.UUID
		var made, deleted managertest.Errors
		var wg sync.WaitGroup
		wg.Go(func() {
			session, made = clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": id.String()}}}, "exit", "0"))
		})
		wg.Go(func() { deleted = c.Member.Ask(t, trashFolder, managertest.Vars{"id": id}, nil) })
		wg.Wait()
		if len(made) == 0 && len(deleted) == 0 && !c.Session(t, session).Status.Final() {
			t.Fatalf("round %d: a live session mounts a folder that is being deleted", i)
		}
		if len(made) > 0 && len(deleted) > 0 {
			t.Errorf("round %d: both refused: %s; %s", i, made, deleted)
		}
		if len(made) == 0 {
			c.Terminate(t, session, true)
			if s := c.WaitForEnd(t, session); s.Status != lifecycle.Cancelled {
				t.Logf("round %d: %s", i, s.Status)
			}
		}
	}
}
