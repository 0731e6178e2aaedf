package folders

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/storage/volume"
)

// place returns the directory of a folder on the server of its volume.
func place(t *testing.T, on, holder, folder string) string {
	t.Helper()
	path, err := volume.FolderPath(holder, folder)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(platform.Mount(on), path)
}

// grow creates n small files in a directory as sessions do: a thousand in each subdirectory.
func grow(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		below := filepath.Join(dir, fmt.Sprint(i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(below, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(below, fmt.Sprint(i)), fmt.Appendf(nil, "file %d\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// entries returns the number of files and directories on the volume disk.
func entries(t *testing.T) int {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(platform.Mount("disk"), &st); err != nil {
		t.Fatal(err)
	}
	return int(st.Files - st.Ffree)
}

// files counts the files below a directory, which can be deleted meanwhile.
func files(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}

// at polls often, for a state that lasts only a short time.
func at(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(cluster.Timeout); !is(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to where %s", what)
		}
	}
}

// watch follows a task in the background, across restarts, and returns a function that waits for
// its end. The progress must never decrease.
func watch(t *testing.T, u *cluster.User, id string) (ended func() client.Task) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Timeout)
	done := make(chan client.Task, 1)
	go func() {
		defer cancel()
		var last client.Task
		for ctx.Err() == nil && last.EndedAt == nil {
			got, err := u.Tasks(ctx, client.TaskFilter{ID: id})
			if err == nil && len(got) == 1 {
				if now := got[0]; now.Done < last.Done {
					t.Errorf("the task %q went from %d of %d back to %d of %d", now.Title, last.Done, last.Total, now.Done, now.Total)
				}
				last = got[0]
			}
			time.Sleep(20 * time.Millisecond)
		}
		done <- last
	}()
	return func() client.Task {
		t.Helper()
		last := <-done
		if last.Status != "DONE" || last.Done != last.Total {
			t.Fatalf("the task is %s at %d of %d, tried %d times: %s", last.Status, last.Done, last.Total, last.Attempt, last.Message)
		}
		return last
	}
}

// killManager sends SIGKILL to the manager. Another manager starts at once.
func killManager(t *testing.T) {
	t.Helper()
	m := platform.Managers[0]
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
}

// killProxies sends SIGKILL to all storage proxies. They restart at once.
func killProxies(t *testing.T) {
	t.Helper()
	for _, p := range platform.Proxies {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range platform.Proxies {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

// killing kills the manager and then the storage proxies in the middle of a task with this amount
// of work, and waits for its end.
func killing(t *testing.T, u *cluster.User, task *client.FolderTask, all int, done func() int) {
	t.Helper()
	ended := watch(t, u, task.Task.ID)
	at(t, "a tenth is done", func() bool { return done() > all/10 })
	killManager(t)
	first := done()
	at(t, "more is done", func() bool { return done() > first+(all-first)/3 })
	killProxies(t)
	second := done()
	last := ended()
	t.Logf("of %d files %d were done when the manager had been killed, %d the proxies; %d tries", all, first, second, last.Attempt)
	if first >= all || second >= all {
		t.Error("no work was left to continue")
	}
}

// The manager and the storage proxies are killed in the middle of long work on many files. The work
// continues, and each file of the result exists exactly once.
func TestTasksOutliveTheirServers(t *testing.T) {
	u := platform.User(t)
	// folder creates a folder with this number of files.
	folder := func(t *testing.T, name, volume string, n int) (id, dir string) {
		t.Helper()
		id = folderOn(t, u, volume, name)
		dir = place(t, volume, u.ID, id)
		grow(t, dir, n)
		return id, dir
	}
	remove := func(t *testing.T, id string) *client.FolderTask {
		t.Helper()
		if _, err := u.TrashFolder(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		begun, err := u.DeleteFolder(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return begun
	}

	t.Run("delete", func(t *testing.T) {
		const n = 100_000
		empty := entries(t)
		id, _ := folder(t, "many", "disk", n)
		full := entries(t)
		killing(t, u.In(t), remove(t, id), n, func() int { return full - entries(t) })
		if left := entries(t) - empty; left > few {
			t.Errorf("%d entries are left", left)
		}
	})

	const n = 20_000
	id, dir := folder(t, "original", "disk", n)
	want := sums(t, dir)
	t.Run("clone", func(t *testing.T) {
		before := entries(t)
		begun, err := u.CloneFolder(t.Context(), client.CloneVfolderInput{ID: id, Name: "clone"})
		if err != nil {
			t.Fatal(err)
		}
		killing(t, u.In(t), begun, n, func() int { return entries(t) - before })
		if d := cmp.Diff(want, sums(t, place(t, "disk", u.ID, begun.Vfolder.ID))); d != "" {
			t.Error(d)
		}
		if more := entries(t) - before; more > n+n/1000+few {
			t.Errorf("%d entries came of %d", more, n)
		}
		watch(t, u, remove(t, begun.Vfolder.ID).Task.ID)()
	})
	t.Run("copy", func(t *testing.T) {
		before := entries(t)
		to := folderOn(t, u, "disk", "copies")
		var items []client.MoveFileItem
		for i := range n / 1000 {
			items = append(items, client.MoveFileItem{From: fmt.Sprint(i), To: fmt.Sprint(i)})
		}
		begun, err := u.CopyFiles(t.Context(), id, to, items, false)
		if err != nil {
			t.Fatal(err)
		}
		killing(t, u.In(t), begun, n, func() int { return entries(t) - before })
		if d := cmp.Diff(want, sums(t, place(t, "disk", u.ID, to))); d != "" {
			t.Error(d)
		}
		if more := entries(t) - before; more > n+n/1000+few {
			t.Errorf("%d entries came of %d", more, n)
		}
	})
	t.Run("hand over", func(t *testing.T) {
		needsPool(t) // on other volumes, a folder is transferred at once
		const n = n / 4
		heir := platform.User(t)
		id, dir := folder(t, "inheritance", "pool", n)
		want := sums(t, dir)
		begun, err := platform.Admin(t).HandOverFolder(t.Context(), id, heir.ID)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Dir(filepath.Dir(filepath.Dir(place(t, "pool", heir.ID, id))))
		killing(t, platform.Admin(t), begun, n, func() int { return files(to) })
		if d := cmp.Diff(want, sums(t, place(t, "pool", heir.ID, id))); d != "" {
			t.Error(d)
		}
		if left := files(filepath.Dir(filepath.Dir(filepath.Dir(dir)))); left > 0 {
			t.Errorf("%d files are left behind", left)
		}
		theirs, err := heir.Folders(t.Context(), client.FolderFilter{Name: "inheritance"})
		if err != nil || len(theirs) != 1 || theirs[0].ID != id {
			t.Errorf("the heir has %v (%v)", theirs, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		before := entries(t)
		begun, err := u.CloneFolder(t.Context(), client.CloneVfolderInput{ID: id, Name: "clone"})
		if err != nil {
			t.Fatal(err)
		}
		at(t, "a tenth is copied", func() bool { return entries(t) > before+n/10 })
		asked := time.Now()
		if _, err := u.CancelTask(t.Context(), begun.Task.ID); err != nil {
			t.Fatal(err)
		}
		cluster.Eventually(t, "the clone and all of its files are deleted", func() bool {
			left, err := u.Folders(t.Context(), client.FolderFilter{ID: begun.Vfolder.ID})
			return err == nil && len(left) == 0 && entries(t) <= before+few
		})
		t.Logf("deleted %s after the request", time.Since(asked).Round(time.Millisecond))
	})
}

// few is the number of directories that the proxies create and delete themselves.
const few = 16
