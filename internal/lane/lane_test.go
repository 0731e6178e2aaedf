package lane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { Main(m) }

// TestLaneHoldsDisks runs in each lane: disks are mounted with their options
// and can be written, and inside the root cannot.
func TestLaneHoldsDisks(t *testing.T) {
	Each(t, Machine{Disks: []Disk{XFS("x"), Ext4("e")}}, func(t *testing.T, p Place) {
		for disk, magic := range map[string]int64{"x": unix.XFS_SUPER_MAGIC, "e": unix.EXT4_SUPER_MAGIC} {
			var st unix.Statfs_t
			if err := unix.Statfs(p.Mount(disk), &st); err != nil || st.Type != magic {
				t.Errorf("%s: type %#x, %v", disk, st.Type, err)
			}
			if err := os.WriteFile(filepath.Join(p.Mount(disk), "file"), []byte("x"), 0o644); err != nil {
				t.Error(err)
			}
		}
		mounts, err := os.ReadFile("/proc/mounts")
		if n := strings.Count(string(mounts), "prjquota"); err != nil || n < 2 {
			t.Errorf("%d mounts with project quotas, %v", n, err)
		}
		if p.Kind != UML {
			return
		}
		if err := os.WriteFile("/etc/berth-lane", nil, 0o644); err == nil {
			t.Error("this machine's files can be written from inside")
		}
	})
}

// TestWhatFailsInsideFails proves that a failure inside is one outside.
func TestWhatFailsInsideFails(t *testing.T) {
	if testing.Short() {
		t.Skip("lanes take a while")
	}
	if inside() {
		t.Run("uml", func(t *testing.T) { t.Fatal("as it should") })
		return
	}
	t.Run("uml", func(t *testing.T) {
		err := boot(t, Machine{}, t.TempDir())
		if _, no := err.(impossible); no {
			t.Skip(err)
		}
		if err == nil || !strings.Contains(err.Error(), "as it should") {
			t.Errorf("a test that failed inside gave %v", err)
		}
	})
}

// TestLaneServesNFS: what is written through a mount lies on the server's disk.
func TestLaneServesNFS(t *testing.T) {
	Each(t, Machine{Disks: []Disk{XFS("x")}, Modules: NFSModules, Kinds: []Kind{UML}}, func(t *testing.T, p Place) {
		p.ServeNFS(t, p.Mount("x"))
		at := p.MountNFS(t, "nfs", "vers=4.2")
		if err := os.WriteFile(filepath.Join(at, "file"), []byte("over the wire"), 0o644); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(p.Mount("x"), "file"))
		if err != nil || string(raw) != "over the wire" {
			t.Errorf("%q, %v", raw, err)
		}
	})
}
