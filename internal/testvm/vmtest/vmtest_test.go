package vmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testvm"
)

func TestMain(m *testing.M) { Main(m) }

// TestVMHoldsDisks checks in each environment that disks are mounted with their options and
// writable, and that the root of a VM is not.
func TestVMHoldsDisks(t *testing.T) {
	Each(t, Machine{Machine: testvm.Machine{Disks: []testvm.Disk{testvm.XFS("x"), testvm.Ext4("e")}}}, func(t *testing.T, p Environment) {
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
		if p.Kind != testvm.UML {
			return
		}
		if err := os.WriteFile("/etc/berth-testvm", nil, 0o644); err == nil {
			t.Error("this machine's files can be written from inside")
		}
	})
}

// TestWhatFailsInsideFails checks that a failure inside a VM fails the test.
func TestWhatFailsInsideFails(t *testing.T) {
	if testing.Short() {
		t.Skip("lanes take a while")
	}
	if inside() {
		t.Run("uml", func(t *testing.T) { t.Fatal("as it should") })
		return
	}
	t.Run("uml", func(t *testing.T) {
		err := boot(t, testvm.Machine{}, t.TempDir())
		if errdefs.IsUnavailable(err) {
			t.Skip(err)
		}
		if err == nil || !strings.Contains(err.Error(), "as it should") {
			t.Errorf("a test that failed inside gave %v", err)
		}
	})
}

// TestVMServesNFS checks that data written through a mount is stored on the server's disk.
func TestVMServesNFS(t *testing.T) {
	m := Machine{Machine: testvm.Machine{Disks: []testvm.Disk{testvm.XFS("x")}, Modules: testvm.NFSModules}, Kinds: []testvm.Kind{testvm.UML}}
	Each(t, m, func(t *testing.T, p Environment) {
		if err := testvm.ServeNFS(p.Mount("x")); err != nil {
			t.Fatal(err)
		}
		at, err := testvm.MountNFS("nfs", "vers=4.2")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "file"), []byte("over the wire"), 0o644); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(p.Mount("x"), "file"))
		if err != nil || string(raw) != "over the wire" {
			t.Errorf("%q, %v", raw, err)
		}
	})
}

// TestVMLoop uses a disk that every kernel supports, so that the host's environment is tested even
// if it has no quotas.
func TestVMLoop(t *testing.T) {
	plain := testvm.Disk{Name: "plain", FS: "ext4", Mkfs: []string{"-q"}, Bytes: 16 << 20, Options: "errors=remount-ro"}
	Each(t, Machine{Machine: testvm.Machine{Disks: []testvm.Disk{plain}}}, func(t *testing.T, p Environment) {
		var st unix.Statfs_t
		if err := unix.Statfs(p.Mount("plain"), &st); err != nil || st.Type != unix.EXT4_SUPER_MAGIC {
			t.Errorf("type %#x, %v", st.Type, err)
		}
	})
}
