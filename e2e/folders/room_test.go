package folders

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/e2e/cluster"
)

// refused uploads a directory that does not fit. The command reports the error, and no part of a
// file is visible.
func refused(t *testing.T, berth *cluster.Shell, folder, wantText string, during func()) {
	t.Helper()
	cmd := berth.Command("folder", "put", "-r", "--skip-existing", folder, "in/.")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	during()
	if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), wantText) {
		t.Errorf("put without room: %v, wants to say %q:\n%s", err, wantText, stderr.String())
	}
	seen := filepath.Join(t.TempDir(), "seen")
	berth.Must("folder", "get", "-r", folder, seen)
	there, here := sums(t, seen), sums(t, filepath.Join(berth.Dir, "in"))
	for name, sum := range there {
		if here[name] != sum {
			t.Errorf("%s exists, and differs from the file that was sent", name)
		}
	}
	if len(there) == len(here) {
		t.Error("all of it is there")
	}
}

// arrives uploads the directory again, which must succeed when there is space.
func arrives(t *testing.T, berth *cluster.Shell, folder string, more int64) {
	t.Helper()
	before := sent()
	berth.Must("folder", "put", "-r", "--skip-existing", folder, "in/.")
	if n := sent() - before; n > more {
		t.Errorf("%d bytes were sent, no more than %d were missing", n, more)
	}
	berth.Must("folder", "get", "-r", folder, "out")
	if d := cmp.Diff(sums(t, filepath.Join(berth.Dir, "in")), sums(t, filepath.Join(berth.Dir, "out"))); d != "" {
		t.Error(d)
	}
	berth.Must("folder", "delete", "--yes", folder)
}

// The disk becomes full in the middle of a file. When there is space again, the upload continues at
// its offset.
func TestDiskIsFull(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	fill(t, filepath.Join(berth.Dir, "in"), 20, 12<<20)
	folderOn(t, u, "small", "tight")
	ballast := filepath.Join(platform.Mount("small"), "ballast")
	wire := platform.Wires[0]
	wire.Hold(9 << 20)
	refused(t, berth, "tight", "no space is left", func() {
		held(t, wire)
		f, err := os.Create(ballast)
		for err == nil {
			_, err = f.Write(make([]byte, 64<<10))
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wire.Restore()
	})
	refused(t, berth, "tight", "no space is left", func() {})
	remove(t, ballast)
	arrives(t, berth, "tight", 5<<20)
}

// A limit is reached in the middle of a file. After an administrator has raised it, the upload
// continues at its offset. If the platform enforces the limit, it rejects the upload before the
// first byte. If the file system enforces it, the error comes in the middle.
func TestLimitIsReached(t *testing.T) {
	needsPool(t)
	u := platform.User(t)
	berth := u.Shell()
	total := fill(t, filepath.Join(berth.Dir, "in"), 20, 24<<20)
	folderOn(t, u, "pool", "bounded")
	limit := func(bytes string) {
		t.Helper()
		platform.UserAs(t, "SUPERADMIN").Shell().Must("admin", "quota", "set", "pool", "--user", u.Email, "--bytes", bytes)
	}
	limit("16m")
	refused(t, berth, "bounded", "limit", func() {})
	limit("64m")
	arrives(t, berth, "bounded", total+1<<20)
}

// A volume is unmounted in the middle of an upload. The error says that the volume is unavailable,
// nothing is written to the directory of the mount point, and the upload continues after the volume
// is mounted again.
func TestVolumeIsUnmounted(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	total := fill(t, filepath.Join(berth.Dir, "in"), 30, 32<<20)
	folderOn(t, u, "disk", "away")
	put := berth.Command("folder", "put", "-r", "away", "in/.")
	var wantText bytes.Buffer
	put.Stderr = &wantText
	wire := platform.Wires[0]
	wire.Hold(total / 2)
	if err := put.Start(); err != nil {
		t.Fatal(err)
	}
	held(t, wire)
	if err := platform.Unmount("disk"); err != nil {
		t.Fatal(err)
	}
	back := sync.OnceValue(func() error { return platform.Remount("disk") })
	t.Cleanup(func() {
		if err := back(); err != nil {
			t.Error(err)
		}
	})
	wire.Restore()
	health := func(want string) func() bool {
		return func() bool {
			all, err := u.Volumes(t.Context())
			for _, v := range all {
				if v.Name == "disk" {
					return err == nil && string(v.Health) == want
				}
			}
			return false
		}
	}
	cluster.Eventually(t, "the volume is unavailable", health("UNAVAILABLE"))
	cluster.Eventually(t, "the error names the unavailable volume", func() bool { // each proxy finds out by itself
		r := berth.Run("folder", "create", "none", "--volume", "disk")
		if r.Code == 0 {
			t.Fatal("a folder was created on a volume that is not mounted")
		}
		return strings.Contains(r.Stderr, "volume disk is unavailable now")
	})
	if bare, err := os.ReadDir(platform.Mount("disk")); err != nil || len(bare) > 0 {
		t.Errorf("the directory of the mount point contains %v (%v)", bare, err)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the volume is healthy", health("HEALTHY"))
	if err := put.Wait(); err != nil {
		t.Fatalf("put continues: %v\n%s", err, wantText.String())
	}
	berth.Must("folder", "get", "-r", "away", "out")
	if d := cmp.Diff(sums(t, filepath.Join(berth.Dir, "in")), sums(t, filepath.Join(berth.Dir, "out"))); d != "" {
		t.Error(d)
	}
}
