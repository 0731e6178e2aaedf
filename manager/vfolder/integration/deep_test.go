package integration

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A folder with a tree that is too deep is cloned without its deepest levels, and the task reports
// this.
func TestADeepFolderIsCloned(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 3)
	fd, err := unix.Open(filepath.Join(d.Root, f.Path), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 600 {
		err := unix.Mkdirat(fd, "d", 0o755)
		next, oerr := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if err != nil || oerr != nil {
			t.Fatal(err, oerr)
		}
		fd = next
	}
	unix.Close(fd)
	to, job, errs := clone(t, c.Member, managertest.Vars{"id": f.ID, "name": "copy"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := ended(t, c, job)
	if got.Status != task.StatusDone || !strings.Contains(got.Message, "512 levels") || !strings.Contains(got.Message, `"d/d/d`) {
		t.Errorf("task: %v", got)
	}
	if copied := d.FolderRow(t, to); copied.Status != vfolder.StatusReady {
		t.Errorf("clone: %v", copied)
	}
}
