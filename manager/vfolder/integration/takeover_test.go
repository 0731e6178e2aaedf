package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// heirs is a storage proxy connected to two managers, the first of which leads.
type heirs struct {
	*clustertest.Proxy
	second *managertest.Manager
	as     *managertest.Client // user of the second manager
}

func newHeirs(t *testing.T) *heirs {
	t.Helper()
	c := clustertest.New(t, 0)
	h := &heirs{Proxy: clustertest.NewProxy(t, c)}
	h.second = c.Start(t)
	h.as = h.second.As(t, c.A.Member)
	h.reached(t)
	return h
}

// reached waits until the proxy serves the second manager too.
func (h *heirs) reached(t *testing.T) {
	t.Helper()
	n := 0
	managertest.Eventually(t, "the second manager reaches the proxy", func() bool {
		n++
		return len(h.as.Ask(t, clustertest.CreateFolderMutation, managertest.Vars{"in": managertest.Vars{"name": fmt.Sprint("reached-", n)}}, nil)) == 0
	})
}

// asked starts a task with a mutation whose payload has the alias done.
func asked(t *testing.T, as *managertest.Client, mutation string, v managertest.Vars) uuid.UUID {
	t.Helper()
	var got struct {
		Done struct{ Task struct{ ID uuid.UUID } }
	}
	as.Must(t, mutation, v, &got)
	return got.Done.Task.ID
}

// inTheMiddle kills the leader when a task has done some of its work. It returns the task after the
// other manager has completed it.
func (h *heirs) inTheMiddle(t *testing.T, job uuid.UUID) *ent.Task {
	t.Helper()
	begun(t, h.Proxy.Cluster, job)
	h.Manager.Kill()
	left := taskRow(t, h.Proxy.Cluster, job)
	if left.EndedAt != nil {
		t.Fatalf("it was over before the leader was killed: %v", left)
	}
	got := ended(t, h.Proxy.Cluster, job)
	if got.Attempt < 2 {
		t.Errorf("no one took it over: %v", got)
	}
	t.Logf("killed at %d of %d, ended at %d of %d", left.Done, left.Total, got.Done, got.Total)
	return got
}

const (
	deleteTask   = `mutation($id: ID!) { done: deleteVfolder(input: {id: $id}) { task { id } } }`
	cloneTask    = `mutation($in: CloneVfolderInput!) { done: cloneVfolder(input: $in) { task { id } } }`
	copyTask     = `mutation($in: CopyFilesInput!) { done: copyFiles(input: $in) { task { id } } }`
	handOverTask = `mutation($id: ID!, $user: ID!) { done: handOverVfolder(input: {id: $id, user: $user}) { task { id } } }`
	manyFiles    = 30_000
)

func TestADeletionOutlivesItsManager(t *testing.T) {
	h := newHeirs(t)
	f := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "data"}, manyFiles)
	beside := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "beside"}, 10)
	h.Cluster.Member.Must(t, trashFolder, managertest.Vars{"id": f.ID}, nil)
	job := asked(t, h.Cluster.Member, deleteTask, managertest.Vars{"id": f.ID})
	if got := h.inTheMiddle(t, job); got.Status != task.StatusDone || h.FolderRow(t, f.ID).Status != vfolder.StatusDeleted {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(h.Root, f.Path)); !os.IsNotExist(err) {
		t.Errorf("on disk: %v", err)
	}
	if n := files(t, h.Proxy, beside); n != 10 {
		t.Errorf("the folder beside it has %d files", n)
	}
}

func TestARemovalOfAnOrphanOutlivesItsManager(t *testing.T) {
	h := newHeirs(t)
	f := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "data"}, manyFiles)
	beside := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "beside"}, 10)
	h.Client.Vfolder.DeleteOne(f).ExecX(h.System(t)) // as if the database is older than the volume
	job := asked(t, h.Manager.As(t, h.Superadmin), `mutation($in: DeleteOrphanInput!) { done: deleteOrphan(input: $in) { task { id } } }`,
		managertest.Vars{"in": managertest.Vars{"volume": h.Client.Volume.Query().OnlyIDX(h.System(t)), "scope": h.A.Member.ID, "folder": f.ID}})
	if got := h.inTheMiddle(t, job); got.Status != task.StatusDone {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(h.Root, f.Path)); !os.IsNotExist(err) {
		t.Errorf("on disk: %v", err)
	}
	if n := files(t, h.Proxy, beside); n != 10 {
		t.Errorf("the folder beside it has %d files", n)
	}
}

func TestACloneOutlivesItsManager(t *testing.T) {
	h := newHeirs(t)
	f := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "data"}, manyFiles)
	job := asked(t, h.Cluster.Member, cloneTask, managertest.Vars{"in": managertest.Vars{"id": f.ID, "name": "copy"}})
	if got := h.inTheMiddle(t, job); got.Status != task.StatusDone {
		t.Fatalf("%v", got)
	}
	copied := h.Client.Vfolder.Query().Where(vfolder.Name("copy")).OnlyX(h.System(t))
	if n := files(t, h.Proxy, copied); n != manyFiles || copied.Status != vfolder.StatusReady || copied.FileCount == nil {
		t.Errorf("%d files in %v", n, copied)
	}
}

func TestACopyOutlivesItsManager(t *testing.T) {
	h := newHeirs(t)
	f := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "data"}, manyFiles)
	to := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "other"}, 0)
	var items []managertest.Vars
	for i := range manyFiles / 1000 {
		items = append(items, managertest.Vars{"from": fmt.Sprint(i), "to": fmt.Sprint("copy-", i)})
	}
	job := asked(t, h.Cluster.Member, copyTask, managertest.Vars{"in": managertest.Vars{"vfolder": f.ID, "toVfolder": to.ID, "items": items}})
	if got := h.inTheMiddle(t, job); got.Status != task.StatusDone {
		t.Errorf("%v", got)
	}
	if n := files(t, h.Proxy, to); n != manyFiles {
		t.Errorf("%d files", n)
	}
}

// held locks the rows that a query selects until it is released.
func held(t *testing.T, client *ent.Client, lock func(context.Context, *ent.Tx) error) (release func()) {
	t.Helper()
	ctx := viewer.SystemContext(t.Context())
	tx, err := client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = tx.Rollback() }
	t.Cleanup(release)
	if err := lock(ctx, tx); err != nil {
		t.Fatal(err)
	}
	return release
}

// The copy is complete, and the manager is killed before it has recorded that. After the restart,
// copied files are not a conflict, and a file that existed before the copy is one.
func TestACopyThatNobodyNoted(t *testing.T) {
	h := newHeirs(t)
	f := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "data"}, 2500)
	items := []managertest.Vars{{"from": "0", "to": "0"}, {"from": "1/1000", "to": "1000"}, {"from": "2", "to": "2"}}
	for try := range 10 {
		to := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": fmt.Sprint("other-", try)}, 0)
		if err := os.WriteFile(filepath.Join(h.Root, to.Path, "2"), []byte("file 2"), 0o644); err != nil {
			t.Fatal(err)
		}
		job := asked(t, h.Cluster.Member, copyTask, managertest.Vars{"in": managertest.Vars{"vfolder": f.ID, "toVfolder": to.ID, "items": items}})
		for taskRow(t, h.Proxy.Cluster, job).Status == task.StatusWaiting {
			time.Sleep(time.Millisecond)
		}
		release := held(t, h.Client, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.Task.Query().Where(task.ID(job)).ForUpdate().Only(ctx)
			return err
		})
		managertest.Eventually(t, "all has arrived", func() bool {
			_, file := os.Stat(filepath.Join(h.Root, to.Path, "1000"))
			_, dir := os.Stat(filepath.Join(h.Root, to.Path, "0", "999"))
			return file == nil && dir == nil
		})
		if left := taskRow(t, h.Proxy.Cluster, job); strings.Contains(string(left.State), `"0"`) {
			release() // the copy was recorded before its row was locked: try once more
			continue
		}
		h.Manager.Kill()
		release()
		got := ended(t, h.Proxy.Cluster, job)
		if got.Status != task.StatusFailed || !strings.HasPrefix(got.Message, "1 of 3 items could not be copied; 2: ") {
			t.Errorf("%s %q", got.Status, got.Message)
		}
		if n := files(t, h.Proxy, to); n != 1002 {
			t.Errorf("%d files", n)
		}
		return
	}
	t.Error("the copy was always noted before it could be held up")
}

// The files are moved to the new owner, and the manager is killed before the row is written.
func TestAHandOverOutlivesItsManager(t *testing.T) {
	h := newHeirs(t)
	f := filled(t, h.Proxy, h.Cluster.Member, managertest.Vars{"name": "data"}, 100)
	release := held(t, h.Client, func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.User.Query().Where(user.ID(h.A.Loner.ID)).ForUpdate().Only(ctx)
		return err
	})
	job := asked(t, h.Manager.As(t, h.A.Admin), handOverTask, managertest.Vars{"id": f.ID, "user": h.A.Loner.ID})
	managertest.Eventually(t, "the files have moved", func() bool {
		_, err := os.Stat(filepath.Join(h.Root, f.Path))
		return os.IsNotExist(err)
	})
	if row := h.FolderRow(t, f.ID); *row.OwnerID != h.A.Member.ID || row.Path != f.Path {
		t.Fatalf("the row moved first: %v", row)
	}
	h.Manager.Kill()
	release()
	got, after := ended(t, h.Proxy.Cluster, job), h.FolderRow(t, f.ID)
	if got.Status != task.StatusDone || *after.OwnerID != h.A.Loner.ID || after.Path == f.Path || files(t, h.Proxy, after) != 100 {
		t.Errorf("%v %v", got, after)
	}
	if n := h.Client.Vfolder.Query().Where(vfolder.OwnerID(h.A.Loner.ID)).CountX(h.System(t)); n != 1 {
		t.Errorf("the heir has %d folders", n)
	}
}
