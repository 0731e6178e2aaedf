package volume_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/volume"
)

// Files of unfinished copies are deleted: after a quarter of an hour if the caller cancelled the
// copy, otherwise after a day, and never while a copy uses them.
func TestSweepArrivals(t *testing.T) {
	mount := t.TempDir()
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) }) // no process would release it
	set, err := volume.NewSet(t.TempDir(), []volume.Config{{
		Name: "main", Backend: "/nonexistent", MountPath: mount, Create: true,
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	v, err := set.Get("main")
	if err != nil {
		t.Fatal(err)
	}
	scope := strings.ReplaceAll(uuid.NewString(), "-", "")
	arriving := filepath.Join(mount, scope, ".arriving")
	for _, name := range []string{"ended", "crashed"} {
		if err := os.MkdirAll(filepath.Join(arriving, name, "copy", "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(arriving, "ended"), time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(arriving)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{time.Minute, []string{"crashed", "ended"}},
		{time.Hour, []string{"crashed"}},
		{23 * time.Hour, []string{"crashed"}},
		{25 * time.Hour, nil},
	} {
		if err := v.SweepArrivals(t.Context(), scope, now.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, step.want) {
			t.Errorf("after %v there are %v, want %v", step.after, got, step.want)
		}
	}
}
