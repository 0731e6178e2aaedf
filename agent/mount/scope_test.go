package mount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/scopemount"
)

// A folder of a scope that is a separate file system is mounted when a session needs it, and stays
// mounted in the session's container when the node unmounts it.
func TestScopesOfTheirOwn(t *testing.T) {
	const scope = "0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	// The test uses tmpfs, whose source is its name.
	rule := scopemount.Rule{Type: "tmpfs", Source: "berth-{scope}", Options: []string{"size=1m"}}
	scopes := scopemount.New(scopemount.Config{Dir: dir, Rule: rule})
	v := Volumes{"v": {Path: dir, Scopes: scopes}, "away": {Path: dir, Scopes: scopemount.New(scopemount.Config{
		Dir: t.TempDir(), Rule: scopemount.Rule{Type: "btrfs", Source: "/dev/away-{scope}"},
	})}}
	f, err := scopes.Open(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(filepath.Join(dir, scope), unix.MNT_DETACH) }()
	if err := os.MkdirAll(filepath.Join(dir, scope, "ab/folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.Close()

	for path, class := range map[string]func(error) bool{
		scope + "/ab/none": errdefs.IsNotFound, scope: errdefs.IsInvalidArgument,
		"ab/folder": errdefs.IsInvalidArgument, scope + "/../x": errdefs.IsInvalidArgument,
	} {
		if _, err := v.Open(t.Context(), []Folder{{Volume: "v", Path: path, Target: "/data"}}); err == nil || !class(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := v.Open(t.Context(), []Folder{{Volume: "away", Path: scope + "/ab/folder", Target: "/data"}}); !errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "mount btrfs /dev/away-"+scope) {
		t.Errorf("a source that is not there: %v", err)
	}
	b, err := v.Open(t.Context(), []Folder{{Volume: "v", Path: scope + "/ab/folder", Target: "/data"}})
	if err != nil {
		t.Fatal(err)
	}
	given := filepath.Join(t.TempDir(), "folders")
	list, err := b.Mount(given)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range b.files { // as after the container was created
		f.Close()
	}
	if err := scopes.Unmount(scope); err != nil {
		t.Fatal(err)
	}
	if on, err := mountinfo.Mounted(list[0].Source); err != nil || !on {
		t.Errorf("the folder of the container: %v, %v", on, err)
	}
	b.files = nil
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
