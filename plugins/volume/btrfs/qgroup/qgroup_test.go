package qgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// scope creates a subvolume and returns its path and number.
func scope(t *testing.T, top *os.File, name string, limit *int64) (string, qgroup.ID) {
	t.Helper()
	if err := qgroup.Create(top, name, limit); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(top.Name(), name)
	id, err := qgroup.Subvolume(open(t, at))
	if err != nil {
		t.Fatal(err)
	}
	return at, id
}

// fill writes until a write is refused, and returns the number of bytes written.
func fill(t *testing.T, path string, most int64) (int64, error) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	block, taken := make([]byte, 1<<20), int64(0)
	for i := range block {
		block[i] = byte(i * 31)
	}
	for taken < most && err == nil {
		var n int
		n, err = f.Write(block)
		taken += int64(n)
	}
	return taken, errors.Join(err, f.Sync(), f.Close())
}

func group(t *testing.T, top *os.File, id qgroup.ID) qgroup.Group {
	t.Helper()
	if err := qgroup.Sync(top); err != nil {
		t.Fatal(err)
	}
	g, err := qgroup.Read(top, id)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func near(got, want int64) bool { return max(got-want, want-got) <= 1<<20 }

func TestLimits(t *testing.T) {
	for _, mode := range []qgroup.Mode{qgroup.Full, qgroup.Simple} {
		t.Run(string(mode), func(t *testing.T) {
			top := open(t, simulatortest.Image(t).Mount)
			if err := qgroup.Enable(top, mode); err != nil {
				t.Fatal(err)
			}
			if err := qgroup.Enable(top, mode); err != nil {
				t.Errorf("again: %v", err)
			}
			other := map[qgroup.Mode]qgroup.Mode{qgroup.Full: qgroup.Simple, qgroup.Simple: qgroup.Full}[mode]
			if err := qgroup.Enable(top, other); !errors.Is(err, unix.EEXIST) {
				t.Errorf("enable %s: %v, want EEXIST", other, err)
			}
			if err := qgroup.WaitRescan(t.Context(), top); err != nil {
				t.Fatal(err)
			}
			if s, err := qgroup.ReadStatus(top); err != nil || s.Mode != mode || !s.Exact() {
				t.Fatalf("status %+v, %v", s, err)
			}
			limit := int64(32 << 20)
			at, id := scope(t, top, "scope", &limit)
			if g := group(t, top, id); g.ID != id || g.Limit == nil || *g.Limit != limit {
				t.Errorf("created as %+v, want the limit %d", g, limit)
			}
			taken, err := fill(t, filepath.Join(at, "data"), 64<<20)
			if !errors.Is(err, unix.EDQUOT) || taken > limit || taken < limit-2<<20 {
				t.Errorf("%d bytes were taken with %v, want EDQUOT near %d", taken, err, limit)
			}
			g := group(t, top, id)
			if g.Referenced > limit || !near(g.Referenced, taken) {
				t.Errorf("%d bytes are referenced, %d were taken", g.Referenced, taken)
			}

			limit = 48 << 20
			if err := qgroup.SetLimit(top, id, &limit); err != nil {
				t.Fatal(err)
			}
			if more, err := fill(t, filepath.Join(at, "more"), 8<<20); err != nil {
				t.Errorf("after the limit was raised %d bytes were taken, then %v", more, err)
			}
			limit = 1 << 20
			if err := qgroup.SetLimit(top, id, &limit); err != nil {
				t.Fatalf("limit below usage: %v", err)
			}
			if more, err := fill(t, filepath.Join(at, "below"), 1<<20); !errors.Is(err, unix.EDQUOT) || more > 0 {
				t.Errorf("under a limit below usage %d bytes were taken, then %v", more, err)
			}
			for _, name := range []string{"data", "more"} {
				if err := os.Remove(filepath.Join(at, name)); err != nil {
					t.Errorf("remove at the limit: %v", err)
				}
			}
			if g := group(t, top, id); g.Referenced > 1<<20 {
				t.Errorf("%d bytes are referenced after all was removed", g.Referenced)
			}
			if err := qgroup.SetLimit(top, id, nil); err != nil {
				t.Fatal(err)
			}
			if g := group(t, top, id); g.Limit != nil {
				t.Errorf("limit %d, it was lifted", *g.Limit)
			}
			if taken, err := fill(t, filepath.Join(at, "data"), 64<<20); err != nil {
				t.Errorf("without a limit %d bytes were taken, then %v", taken, err)
			}
		})
	}
}

func TestZeroRefusesAll(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	if err := qgroup.Enable(top, qgroup.Full); err != nil {
		t.Fatal(err)
	}
	zero := int64(0)
	at, id := scope(t, top, "scope", &zero)
	if g := group(t, top, id); g.Limit == nil || *g.Limit != 0 {
		t.Errorf("group %+v, want the limit 0", g)
	}
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o600); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a file could be created: %v", err)
	}
	if err := os.Remove(at); err != nil { // rmdir can remove an empty subvolume
		t.Error(err)
	}
}

func TestReservedIsHeldAgainstTheLimit(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	if err := qgroup.Enable(top, qgroup.Full); err != nil {
		t.Fatal(err)
	}
	at, id := scope(t, top, "scope", nil)
	if err := os.WriteFile(filepath.Join(at, "data"), make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	promised, err := qgroup.Reserved(top, id)
	g, rerr := qgroup.Read(top, id)
	if err != nil || rerr != nil || !near(g.Referenced+promised, 8<<20) {
		t.Errorf("referenced %d and promised %d, want 8 MiB together (%v, %v)", g.Referenced, promised, err, rerr)
	}
	after := group(t, top, id)
	promised, err = qgroup.Reserved(top, id)
	if err != nil || promised != 0 || !near(after.Referenced, 8<<20) {
		t.Errorf("after a sync: referenced %d and promised %d, %v", after.Referenced, promised, err)
	}
}

// TestDeletedButOpen checks that a file that was removed while open counts until it is closed.
func TestDeletedButOpen(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	if err := qgroup.Enable(top, qgroup.Full); err != nil {
		t.Fatal(err)
	}
	at, id := scope(t, top, "scope", nil)
	if _, err := fill(t, filepath.Join(at, "data"), 8<<20); err != nil {
		t.Fatal(err)
	}
	f := open(t, filepath.Join(at, "data"))
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if g := group(t, top, id); !near(g.Referenced, 8<<20) {
		t.Errorf("%d bytes are referenced while the removed file is open", g.Referenced)
	}
	f.Close()
	// The space of the removed file is freed in the background.
	wait.Until(t, "the bytes of a closed file are not referenced", func() bool { return group(t, top, id).Referenced <= 1<<20 })
}

func TestSnapshotAndDelete(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	if err := qgroup.Enable(top, qgroup.Full); err != nil {
		t.Fatal(err)
	}
	at, id := scope(t, top, "scope", nil)
	if _, err := fill(t, filepath.Join(at, "data"), 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := qgroup.Sync(top); err != nil {
		t.Fatal(err)
	}
	if err := qgroup.Snapshot(top, "copy", open(t, at), nil, false); err != nil {
		t.Fatal(err)
	}
	second := open(t, filepath.Join(top.Name(), "copy"))
	copied, err := qgroup.Subvolume(second)
	if err != nil {
		t.Fatal(err)
	}
	if g := group(t, top, copied); !near(g.Referenced, 8<<20) || g.Exclusive > 1<<20 {
		t.Errorf("the snapshot has %+v, want 8 MiB shared", g)
	}
	if yes, err := qgroup.IsSubvolume(second); !yes || err != nil {
		t.Errorf("a snapshot is a subvolume: %v, %v", yes, err)
	}
	if err := os.Mkdir(filepath.Join(at, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := open(t, filepath.Join(at, "plain"))
	if yes, err := qgroup.IsSubvolume(plain); yes || err != nil {
		t.Errorf("a directory is a subvolume: %v, %v", yes, err)
	}
	if within, err := qgroup.Subvolume(plain); err != nil || within != id {
		t.Errorf("a directory is in %v, %v, want %v", within, err, id)
	}
	if err := os.Remove(at); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("rmdir of a full subvolume: %v", err)
	}
	if err := qgroup.Delete(top, "scope"); err != nil {
		t.Fatal(err)
	}
	if err := qgroup.Delete(top, "scope"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("delete again: %v", err)
	}
	if data, err := os.Stat(filepath.Join(second.Name(), "data")); err != nil || data.Size() != 8<<20 {
		t.Errorf("the snapshot after its source was deleted: %v, %v", data, err)
	}
}

func TestQuotasOff(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	if s, err := qgroup.ReadStatus(top); err != nil || s.Mode != qgroup.Off || s.Exact() {
		t.Errorf("status %+v, %v", s, err)
	}
	_, id := scope(t, top, "scope", nil)
	limit := int64(1 << 20)
	if err := qgroup.Create(top, "limited", &limit); !errors.Is(err, unix.ENOTCONN) {
		t.Errorf("create with a limit: %v", err)
	}
	if err := qgroup.SetLimit(top, id, &limit); !errors.Is(err, unix.ENOTCONN) {
		t.Errorf("limit: %v", err)
	}
	if _, err := qgroup.Read(top, id); !errors.Is(err, unix.ENOENT) {
		t.Errorf("read: %v", err)
	}
	if err := qgroup.Disable(top); err != nil {
		t.Errorf("disable: %v", err)
	}

	// A rescan counts the data that existed before quotas were enabled.
	if _, err := fill(t, filepath.Join(top.Name(), "scope", "data"), 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := qgroup.Enable(top, qgroup.Full); err != nil {
		t.Fatal(err)
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := qgroup.WaitRescan(patient, top); err != nil {
		t.Fatal(err)
	}
	if g := group(t, top, id); !near(g.Referenced, 8<<20) {
		t.Errorf("%d bytes are referenced after the rescan", g.Referenced)
	}
	if err := qgroup.Rescan(top); err != nil {
		t.Errorf("rescan: %v", err)
	}
	if err := qgroup.WaitRescan(patient, top); err != nil {
		t.Error(err)
	}
	if err := qgroup.Disable(top); err != nil {
		t.Fatal(err)
	}
	if s, err := qgroup.ReadStatus(top); err != nil || s.Mode != qgroup.Off {
		t.Errorf("status %+v, %v", s, err)
	}
}

// TestAll has more groups than fit into one response of the kernel.
func TestAll(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	if err := qgroup.Enable(top, qgroup.Full); err != nil {
		t.Fatal(err)
	}
	const many = 120
	want := map[qgroup.ID]int64{}
	for i := range int64(many) {
		limit := (i + 1) << 20
		_, id := scope(t, top, fmt.Sprint("scope-", i), &limit)
		want[id] = limit
	}
	all, err := qgroup.All(top)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range all {
		if i > 0 && g.ID <= all[i-1].ID {
			t.Fatalf("%v comes after %v", g.ID, all[i-1].ID)
		}
		if limit, ok := want[g.ID]; ok && g.Limit != nil && *g.Limit == limit {
			delete(want, g.ID)
		}
	}
	if len(want) > 0 {
		t.Errorf("groups missing or with another limit: %v", want)
	}
}

func TestNames(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	for _, name := range []string{"", ".", "..", "a/b", "/a", "a\x00b", string(make([]byte, 256))} {
		if err := qgroup.Create(top, name, nil); !errors.Is(err, unix.EINVAL) {
			t.Errorf("create %q: %v", name, err)
		}
		if err := qgroup.Delete(top, name); !errors.Is(err, unix.EINVAL) {
			t.Errorf("delete %q: %v", name, err)
		}
	}
	if err := qgroup.Create(top, "twice", nil); err != nil {
		t.Fatal(err)
	}
	if err := qgroup.Create(top, "twice", nil); !errors.Is(err, unix.EEXIST) {
		t.Errorf("create again: %v", err)
	}
}

func TestElsewhere(t *testing.T) {
	dir := open(t, t.TempDir())
	if yes, err := qgroup.IsBtrfs(dir); err != nil {
		t.Fatal(err)
	} else if yes {
		t.Skip("the temporary directory is on btrfs itself")
	}
	if _, err := qgroup.Subvolume(dir); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("subvolume: %v", err)
	}
	if err := qgroup.Create(dir, "scope", nil); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("create: %v", err)
	}
}
