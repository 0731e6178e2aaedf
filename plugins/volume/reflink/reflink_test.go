package reflink_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
	"github.com/berthhq/berth/plugins/volume/reflink"
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

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestTree copies from one subvolume to another, as between two users.
func TestTree(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	must(t, qgroup.Enable(top, qgroup.Full), qgroup.Create(top, "a", nil), qgroup.Create(top, "b", nil))
	a, b := filepath.Join(top.Name(), "a"), filepath.Join(top.Name(), "b")
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	old := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)
	source := filepath.Join(a, "tree")
	must(t,
		os.MkdirAll(filepath.Join(source, "deep/er"), 0o755),
		os.WriteFile(filepath.Join(source, "deep/er/data"), data, 0o640),
		os.Link(filepath.Join(source, "deep/er/data"), filepath.Join(source, "again")),
		os.WriteFile(filepath.Join(source, "empty"), nil, 0o600),
		os.WriteFile(filepath.Join(source, "bin"), []byte("#!"), 0o600),
		os.Chown(filepath.Join(source, "bin"), 1234, 4321),
		os.Chmod(filepath.Join(source, "bin"), os.ModeSetuid|0o755),
		os.Symlink("/etc/passwd", filepath.Join(source, "out")),
		unix.Mkfifo(filepath.Join(source, "pipe"), 0o600),
		unix.Mknod(filepath.Join(source, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		unix.Setxattr(filepath.Join(source, "bin"), "user.colour", []byte("blue"), 0),
		os.WriteFile(filepath.Join(source, "na\nme \xff"), []byte("x"), 0o600),
		os.Chtimes(filepath.Join(source, "bin"), old, old),
		os.Chmod(filepath.Join(source, "deep"), 0o750),
		os.Chtimes(filepath.Join(source, "deep"), old, old),
		qgroup.Sync(top))

	var last reflink.Done
	must(t, reflink.Tree(t.Context(), open(t, source), open(t, b), "copy", func(d reflink.Done) error {
		if d.Files < last.Files || d.Bytes < last.Bytes {
			t.Errorf("progress went from %+v to %+v", last, d)
		}
		last = d
		return nil
	}))
	if last.Files != 7 || last.Shared < int64(len(data)) || last.Shared > int64(len(data))+1<<20 {
		t.Errorf("reported %+v, want 7 files and 8 MiB shared", last)
	}
	target := filepath.Join(b, "copy")
	if got, err := os.ReadFile(filepath.Join(target, "again")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes were copied, %v", len(got), err)
	}
	one, err1 := os.Stat(filepath.Join(target, "again"))
	two, err2 := os.Stat(filepath.Join(target, "deep/er/data"))
	must(t, err1, err2)
	if !os.SameFile(one, two) || one.Mode() != 0o640 {
		t.Errorf("names of one file: %v and %v", one, two)
	}
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(target, "bin"), &st))
	if st.Uid != 1234 || st.Gid != 4321 || st.Mode&0o7777 != 0o755 || st.Mtim.Nano() != old.UnixNano() {
		t.Errorf("the program is %+v", st)
	}
	if text, err := os.Readlink(filepath.Join(target, "out")); err != nil || text != "/etc/passwd" {
		t.Errorf("link to %q, %v", text, err)
	}
	colour := make([]byte, 16)
	if n, err := unix.Getxattr(filepath.Join(target, "bin"), "user.colour", colour); err != nil || string(colour[:n]) != "blue" {
		t.Errorf("attribute %q, %v", colour[:n], err)
	}
	if d, err := os.Stat(filepath.Join(target, "deep")); err != nil || d.Mode().Perm() != 0o750 || !d.ModTime().Equal(old) {
		t.Errorf("directory %v, %v", d, err)
	}
	if _, err := os.Lstat(filepath.Join(target, "null")); !os.IsNotExist(err) {
		t.Errorf("a device was copied: %v", err)
	}

	// The blocks are shared, and writes are accounted to the side that writes.
	must(t, qgroup.Sync(top))
	id, err := qgroup.Subvolume(open(t, b))
	must(t, err)
	g, err := qgroup.Read(top, id)
	must(t, err)
	if g.Exclusive > 1<<20 || g.Referenced < int64(len(data)) {
		t.Errorf("the copy has %+v, want 8 MiB shared", g)
	}
	must(t, os.WriteFile(filepath.Join(target, "again"), []byte("changed"), 0o600))
	if got, err := os.ReadFile(filepath.Join(source, "again")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("a change of the copy reached the source: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	top := open(t, simulatortest.Image(t).Mount)
	must(t, qgroup.Enable(top, qgroup.Full), qgroup.Create(top, "a", nil), qgroup.Create(top, "small", nil))
	source := filepath.Join(top.Name(), "a", "tree")
	must(t, os.Mkdir(source, 0o755), os.WriteFile(filepath.Join(source, "data"), make([]byte, 8<<20), 0o600), qgroup.Sync(top))
	small := open(t, filepath.Join(top.Name(), "small"))
	refuse := func(d reflink.Done) error {
		if d.Shared > 1<<20 {
			return unix.EDQUOT
		}
		return nil
	}
	if err := reflink.Tree(t.Context(), open(t, source), small, "copy", refuse); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a copy that is stopped: %v, want EDQUOT", err)
	}
	a := open(t, filepath.Join(top.Name(), "a"))
	if err := reflink.Tree(t.Context(), open(t, source), a, "tree", func(reflink.Done) error { return nil }); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a copy over something: %v, want EEXIST", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := reflink.Tree(gone, open(t, source), a, "late", func(reflink.Done) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled copy: %v", err)
	}
	if err := reflink.Tree(t.Context(), open(t, source), open(t, t.TempDir()), "away", func(reflink.Done) error { return nil }); !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("a copy to another file system: %v", err)
	}
}
