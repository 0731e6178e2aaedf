package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

const (
	cloneFolder = `mutation($in: CloneVfolderInput!) { cloneVfolder(input: $in) { vfolder { id status clonedFrom { id } } task { id } } }`
	cancelTask  = `mutation($id: ID!) { cancelTask(input: {id: $id}) { task { status } } }`
)

// filled creates a folder with a number of small files.
func filled(t *testing.T, d *clustertest.Proxy, as *managertest.Client, in managertest.Vars, files int) *ent.Vfolder {
	t.Helper()
	id, errs := clustertest.CreateFolder(t, as, in)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	f := d.FolderRow(t, id)
	for i := range files {
		dir := filepath.Join(d.Root, f.Path, fmt.Sprint(i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), fmt.Appendf(nil, "file %d", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// files counts the files of a folder on disk, and checks their contents.
func files(t *testing.T, d *clustertest.Proxy, f *ent.Vfolder) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(d.Root, f.Path), func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		if want := "file " + e.Name(); err == nil && string(text) != want {
			t.Errorf("%s: %q", p, text)
		}
		n++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// clone requests a clone and returns its folder and task.
func clone(t *testing.T, as *managertest.Client, in managertest.Vars) (folder, task uuid.UUID, errs managertest.Errors) {
	t.Helper()
	var got struct {
		CloneVfolder struct {
			Vfolder struct{ ID uuid.UUID }
			Task    struct{ ID uuid.UUID }
		}
	}
	errs = as.Ask(t, cloneFolder, managertest.Vars{"in": in}, &got)
	return got.CloneVfolder.Vfolder.ID, got.CloneVfolder.Task.ID, errs
}

func taskRow(t *testing.T, c *clustertest.Cluster, id uuid.UUID) *ent.Task {
	t.Helper()
	return c.Client.Task.GetX(c.System(t), id)
}

// ended waits for the end of a task.
func ended(t *testing.T, c *clustertest.Cluster, id uuid.UUID) *ent.Task {
	t.Helper()
	var got *ent.Task
	managertest.Eventually(t, "task has ended", func() bool {
		got = taskRow(t, c, id)
		return got.EndedAt != nil
	})
	return got
}

// begun waits until a task is in the middle of its work. It fails if the task ends first.
func begun(t *testing.T, c *clustertest.Cluster, id uuid.UUID) {
	t.Helper()
	managertest.Eventually(t, "task has begun", func() bool {
		got := taskRow(t, c, id)
		if got.EndedAt != nil {
			t.Fatalf("it was over before it could be stopped: %v", got)
		}
		return got.Status == task.StatusRunning && got.Done > 0
	})
}

func TestAFolderIsCloned(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	friend := c.Manager.As(t, c.A.Loner)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data", "usageMode": "MODEL"}, 2500)
	if _, _, errs := clone(t, friend, managertest.Vars{"id": f.ID, "name": "mine"}); errs.Code() != "NOT_FOUND" {
		t.Errorf("a user who cannot see it clones it: %s", errs)
	}
	if _, _, errs := clone(t, c.Manager.As(t, c.A.Admin), managertest.Vars{"id": f.ID, "name": "mine"}); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("an admin clones a folder that they cannot read: %s", errs)
	}
	to, job, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "copy", "project": c.A.Project.ID})
	if errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member clones into their project: %s %s %s", errs, to, job)
	}
	if _, _, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "data"}); errs.Code() != "ALREADY_EXISTS" {
		t.Errorf("a name that is taken: %s", errs)
	}
	to, job, errs = clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "copy"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := ended(t, c, job); got.Status != task.StatusDone || got.Done != got.Total || got.Done < 2500 {
		t.Errorf("task: %v", got)
	}
	copied := d.FolderRow(t, to)
	if copied.Status != vfolder.StatusReady || copied.ClonedFromID == nil || *copied.ClonedFromID != f.ID || copied.UsageMode != vfolder.UsageModeModel {
		t.Errorf("clone: %v", copied)
	}
	if n := files(t, d, copied); n != 2500 {
		t.Errorf("%d files", n)
	}
	if copied.FileCount == nil || *copied.FileCount < 2500 || copied.UsedBytes == nil {
		t.Errorf("its size is not known: %v", copied)
	}
}

// A cancelled clone leaves nothing behind. The access token has only the scope of folders.
func TestACloneIsCancelled(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 30_000)
	token := func(scope string) *managertest.Client {
		_, secret := accessToken(t, c.Member, scope, scope)
		as := c.Manager.Anonymous()
		as.Header.Set("Authorization", "Bearer "+secret)
		return as
	}
	sessions, folders := token("sessions"), token("folders")
	to, job, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "copy"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	begun(t, c, job)
	folders.Must(t, cancelTask, managertest.Vars{"id": job}, nil)
	if errs := sessions.Ask(t, cancelTask, managertest.Vars{"id": job}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a token for sessions: %s", errs)
	}
	if id, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "copy"}); len(errs) > 0 {
		t.Errorf("the name is not free: %s %s", errs, id)
	}
	managertest.Eventually(t, "the copy is deleted", func() bool {
		return !c.Client.Vfolder.Query().Where(vfolder.ID(to)).ExistX(c.System(t))
	})
	managertest.Eventually(t, "nothing is left on disk", func() bool {
		found := false
		err := filepath.WalkDir(d.Root, func(p string, _ fs.DirEntry, err error) error {
			found = found || strings.Contains(strings.ReplaceAll(p, "/", ""), strings.ReplaceAll(to.String(), "-", "")) || strings.Contains(p, to.String())
			return nil
		})
		return err == nil && !found
	})
	if n := files(t, d, f); n != 30_000 {
		t.Errorf("the original has %d files", n)
	}
	if errs := c.Member.Ask(t, `mutation($id: ID!) { retryTask(input: {id: $id}) { task { id } } }`, managertest.Vars{"id": job}, nil); len(errs) > 0 {
		t.Error(errs)
	} else if got := ended(t, c, job); got.Status != task.StatusFailed {
		t.Errorf("a clone that was taken back is tried again: %v", got)
	}
}

// A clone and a deletion whose proxy disconnects in the middle wait for it, and other tasks
// continue.
func TestWorkOnFoldersGoesOn(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	other := clustertest.NewProxyOf(t, c, "s2", storage.VolumeConfig{Name: "other", MountPath: filepath.Join(t.TempDir(), "other")})
	second := c.Client.Volume.Query().Where(volume.Name("other")).OnlyX(c.System(t)).ID
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 30_000)
	small := filled(t, other, c.Member, managertest.Vars{"name": "small", "volume": second}, 10)

	if _, _, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "far", "volume": second}); errs.Code() != "FAILED_PRECONDITION" ||
		!strings.Contains(errs.String(), "s1") || !strings.Contains(errs.String(), "s2") {
		t.Errorf("a clone between proxies: %s", errs)
	}

	to, job, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "copy"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	begun(t, c, job)
	d.Stop()
	managertest.Eventually(t, "the task reports the reason for waiting", func() bool {
		got := taskRow(t, c, job)
		return got.Status == task.StatusWaiting && strings.Contains(got.Message, "storage proxy") && strings.Contains(got.Message, "main")
	})
	_, near, errs := clone(t, c.Member, managertest.Vars{"id": small.ID, "name": "near", "volume": second})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := ended(t, c, near); got.Status != task.StatusDone {
		t.Errorf("at the other proxy: %v", got)
	}
	d.StartProxy(t, nil)
	if got := ended(t, c, job); got.Status != task.StatusDone {
		t.Fatalf("after the proxy is back: %v", got)
	}
	copied := d.FolderRow(t, to)
	if n := files(t, d, copied); n != 30_000 {
		t.Errorf("%d files", n)
	}

	c.Member.Must(t, trashFolder, managertest.Vars{"id": to}, nil)
	var got struct {
		DeleteVfolder struct{ Task struct{ ID uuid.UUID } }
	}
	c.Member.Must(t, deleteFolder, managertest.Vars{"id": to}, &got)
	job = got.DeleteVfolder.Task.ID
	begun(t, c, job)
	d.Stop()
	if errs := c.Member.Ask(t, cancelTask, managertest.Vars{"id": job}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("a deletion is taken back: %s", errs)
	}
	d.StartProxy(t, nil)
	if got := ended(t, c, job); got.Status != task.StatusDone || d.FolderRow(t, to).Status != vfolder.StatusDeleted {
		t.Errorf("deletion: %v", got)
	}
	if _, err := os.Stat(filepath.Join(d.Root, copied.Path)); !os.IsNotExist(err) {
		t.Errorf("on disk: %v", err)
	}
	if n := files(t, d, f); n != 30_000 {
		t.Errorf("the original has %d files", n)
	}
}

// The permissions of other users on a folder in the trash, and its automatic deletion.
func TestTheTrash(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	friend, root := c.Manager.As(t, c.A.Loner), c.Manager.As(t, c.Superadmin)
	a, b := filled(t, d, c.Member, managertest.Vars{"name": "a"}, 3), filled(t, d, c.Member, managertest.Vars{"name": "b"}, 3)
	var shared shareResults
	c.Member.Must(t, shareFolder, managertest.Vars{"id": a.ID, "emails": []string{c.A.Loner.Email}, "p": "READ_WRITE_DELETE"}, &shared)
	friend.Must(t, `mutation($id: ID!) { acceptVfolderShare(input: {id: $id}) { share { id } } }`,
		managertest.Vars{"id": shared.ShareVfolder.Results[0].Share.ID}, nil)
	friend.Must(t, trashFolder, managertest.Vars{"id": a.ID}, nil)
	if code := friend.Ask(t, deleteFolder, managertest.Vars{"id": a.ID}, nil).Code(); code != "PERMISSION_DENIED" {
		t.Errorf("permanently deleted by a user it is shared with: %q", code)
	}
	friend.Must(t, `mutation($id: ID!) { restoreVfolder(input: {id: $id}) { vfolder { id } } }`, managertest.Vars{"id": a.ID}, nil)
	if n := files(t, d, a); n != 3 {
		t.Errorf("%d files after it was restored", n)
	}
	for _, f := range []*ent.Vfolder{a, b} {
		c.Member.Must(t, trashFolder, managertest.Vars{"id": f.ID}, nil)
	}
	if errs := c.Member.Ask(t, `mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["d"]}) { results { error } } }`, managertest.Vars{"id": a.ID}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("files in the trash are changed: %s", errs)
	}

	// Folders that are too old are deleted by the sweep, which runs first.
	root.Must(t, `mutation { setRetention(input: {category: TRASH, days: 7}) { retention { days } } }`, nil, nil)
	d.Client.Vfolder.UpdateOneID(b.ID).SetDeletedAt(time.Now().AddDate(0, 0, -8)).ExecX(c.System(t))
	c.Manager.Stop()
	c.Manager = c.Start(t)
	managertest.Eventually(t, "the old one is on its way", func() bool { return d.FolderRow(t, b.ID).Status == vfolder.StatusDeleting })
	if s := d.FolderRow(t, a.ID).Status; s != vfolder.StatusTrash {
		t.Errorf("the young one: %s", s)
	}
	var emptied struct{ EmptyTrash struct{ Count int } }
	c.Manager.As(t, c.A.Member).Must(t, `mutation { emptyTrash(input: {}) { count } }`, nil, &emptied)
	if emptied.EmptyTrash.Count != 1 || d.FolderRow(t, a.ID).Status != vfolder.StatusDeleting {
		t.Errorf("%+v %v", emptied, d.FolderRow(t, a.ID))
	}
}

// Folders whose names begin with a dot are mounted in every session, unless the request excludes
// them.
func TestAutoMount(t *testing.T) {
	c := clustertest.New(t, 1)
	d := clustertest.NewProxy(t, c)
	lead := c.Manager.As(t, c.A.Lead)
	for _, name := range []string{".ssh", ".bashrc", ".Config"} {
		if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": name}); errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("%s: %s", name, errs)
		}
	}
	own := filled(t, d, c.Member, managertest.Vars{"name": ".cache"}, 1)
	filled(t, d, lead, managertest.Vars{"name": ".cache", "project": c.A.Project.ID}, 1)
	tools := filled(t, d, lead, managertest.Vars{"name": ".tools", "project": c.A.Project.ID, "permission": "READ_ONLY"}, 1)
	filled(t, d, c.Member, managertest.Vars{"name": "plain"}, 1)
	mounts := func(in managertest.Vars) map[string]*ent.SessionMount {
		id := c.Create(t, clustertest.SessionInput(in, "sleep", "600"))
		m := map[string]*ent.SessionMount{}
		for _, one := range c.Client.SessionMount.Query().Where(sessionmount.SessionID(id)).AllX(c.System(t)) {
			m[one.Target] = one
		}
		return m
	}
	got := mounts(nil)
	if a, b := got["/home/work/.cache"], got["/home/work/.tools"]; len(got) != 2 || a == nil || b == nil ||
		a.VfolderID != own.ID || a.ReadOnly || b.VfolderID != tools.ID || !b.ReadOnly {
		t.Errorf("mounted: %v", got)
	}
	if d.FolderRow(t, own.ID).LastUsedAt == nil {
		t.Error("it is not known when it was used")
	}
	if got := mounts(managertest.Vars{"autoMount": false}); len(got) != 0 {
		t.Errorf("not wanted: %v", got)
	}
	got = mounts(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": ".cache", "target": "/data"}, {"vfolder": "plain", "target": "/home/work/.tools"}}})
	if len(got) != 3 || got["/data"] == nil || got["/home/work/.tools"].VfolderID == tools.ID || got["/home/work/.cache"].VfolderID == own.ID {
		t.Errorf("the requested folder comes first: %v", got)
	}
}
