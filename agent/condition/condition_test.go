package condition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/report"
)

// small mounts a file system of 20 MiB with 1000 inodes.
func small(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=20m,nr_inodes=1000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func fill(t *testing.T, dir string, bytes int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDiskPressure fills and empties a disk. The condition ends only well above the threshold,
// which is a tenth of a small disk.
func TestDiskPressure(t *testing.T) {
	dir := small(t)
	changes := 0
	m := New(Config{Disks: []Disk{{"disk", dir}, {"same disk", dir}}, OnChange: func() { changes++ }, Logger: slog.New(slog.DiscardHandler)})
	for i, step := range []struct {
		mib     float64
		holding bool
	}{{0, false}, {17.75, false}, {19, true}, {17.75, true}, {16, false}, {17.75, false}, {19, true}, {0, false}} {
		fill(t, dir, int(step.mib*(1<<20)))
		m.Check(t.Context())
		if got := strings.Contains(m.Holding(), "disk pressure"); got != step.holding {
			t.Errorf("step %d, %g MiB written: holding %q", i, step.mib, m.Holding())
		}
	}
	if changes != 4 {
		t.Errorf("%d changes were reported", changes)
	}
}

// TestInodePressure does the same with inodes.
func TestInodePressure(t *testing.T) {
	dir := small(t)
	m := New(Config{Disks: []Disk{{"disk", dir}}, Logger: slog.New(slog.DiscardHandler)})
	for i := range 970 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if m.Check(t.Context()); !strings.Contains(m.Holding(), "inode pressure") {
		t.Errorf("holding %q", m.Holding())
	}
}

// TestMemoryPressure uses a threshold above the memory of any machine.
func TestMemoryPressure(t *testing.T) {
	m := New(Config{Limits: Limits{MemoryBytes: 1 << 60}, Logger: slog.New(slog.DiscardHandler)})
	if m.Check(t.Context()); !strings.Contains(m.Holding(), "memory pressure") {
		t.Errorf("holding %q", m.Holding())
	}
}

// TestRuntime checks that a single contradicting check of the runtime changes nothing.
func TestRuntime(t *testing.T) {
	var away error
	m := New(Config{Runtime: func(context.Context) error { return away }, Logger: slog.New(slog.DiscardHandler)})
	check := func(n int, holding bool) {
		t.Helper()
		for range n {
			m.Check(t.Context())
		}
		if got := strings.Contains(m.Holding(), "runtime unavailable"); got != holding {
			t.Errorf("holding %q", m.Holding())
		}
	}
	check(1, false)
	away = errors.New("no answer")
	check(confirmations-1, false)
	check(1, true)
	away = nil
	check(1, true)
	away = errors.New("no answer")
	check(confirmations, true)
	away = nil
	check(confirmations, false)
}

// TestBlame checks that a start that found no space is attributed to the machine even if the disk
// looks free, and that a refused start is not, even if the disk is full.
func TestBlame(t *testing.T) {
	dir := small(t)
	m := New(Config{Disks: []Disk{{"disk", dir}}, Logger: slog.New(slog.DiscardHandler)})
	if why, yes := m.Blame(t.Context(), errors.New("something else")); yes {
		t.Errorf("blamed for %s", why)
	}
	why, yes := m.Blame(t.Context(), errors.New("runc create failed: write: no space left on device"))
	if !yes || !strings.Contains(why, "found no space") {
		t.Errorf("%t: %s", yes, why)
	}
	if list := m.List(); list[0].Type != report.DiskPressure || !list[0].Status {
		t.Errorf("conditions %v", list)
	}
}
