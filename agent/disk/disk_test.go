package disk

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func disks(t *testing.T) (*Disks, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts and quotas need root")
	}
	dir := t.TempDir()
	d, p, err := New(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Ok {
		t.Skip(p.Detail)
	}
	t.Log(p.Detail)
	return d, filepath.Join(dir, "kernel")
}

func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// TestLimit writes beyond the limits of bytes and of files.
func TestLimit(t *testing.T) {
	d, at := disks(t)
	if err := d.Make(t.Context(), at, Min); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, "f"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(f, io.LimitReader(zeros{}, 2*Min))
	if err = errors.Join(err, f.Sync(), f.Close()); !full(err) || n > Min || n < Min*9/10 {
		t.Errorf("%d bytes were written, %v", n, err)
	}
	if u, err := d.Usage(at); err != nil || !u.Full() || u.MaxBytes > Min {
		t.Errorf("usage of a full disk: %+v, %v", u, err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if u, err := d.Usage(at); err != nil || u.Full() {
		t.Errorf("usage of an empty disk: %+v, %v", u, err)
	}
	for i := range 2 * Min / bytesPerInode {
		if err = os.WriteFile(filepath.Join(at, strconv.Itoa(i)), nil, 0o600); err != nil {
			break
		}
	}
	if u, _ := d.Usage(at); !full(err) || !u.Full() {
		t.Errorf("files beyond the limit: %v, %+v", err, u)
	}
	if err := d.Remove(at); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(at + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestMakeAgain makes a disk where one is, as after an agent that was killed: it is
// empty, and removing it twice is no error.
func TestMakeAgain(t *testing.T) {
	d, at := disks(t)
	for range 2 {
		if err := d.Make(t.Context(), at, Min); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(at); err != nil || len(entries) > 0 {
			t.Fatalf("a new disk has %v, %v", entries, err)
		}
		if err := os.WriteFile(filepath.Join(at, "f"), bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := d.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTemplates makes disks of several sizes, the first of each by mkfs and the next ones
// from its template: they have their sizes, are whole, and are not each other's.
func TestTemplates(t *testing.T) {
	d, at := disks(t)
	if d.way != Image {
		t.Skip("no images are used here")
	}
	d.Run(t.Context())
	for _, size := range []int64{Default, Min, Default, Min} {
		if err := d.Make(t.Context(), at, size); err != nil {
			t.Fatal(err)
		}
		if u, err := d.Usage(at); err != nil || u.MaxBytes > size || u.MaxBytes < size*9/10 {
			t.Errorf("a disk of %d bytes: %+v, %v", size, u, err)
		}
		if entries, err := os.ReadDir(at); err != nil || len(entries) > 0 {
			t.Errorf("a new disk has %v, %v", entries, err)
		}
		if err := os.WriteFile(filepath.Join(at, "f"), bytes.Repeat([]byte("x"), 10<<20), 0o600); err != nil {
			t.Error(err)
		}
		if err := unmount(at); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "e2fsck", "-fn", imageOf(at)).CombinedOutput(); err != nil {
			t.Errorf("a disk of %d bytes: %v: %s", size, err, out)
		}
	}
	for i := range int64(maxTemplates) {
		if err := d.empty.make(t.Context(), Min+(i+1)<<20, imageOf(at)+strconv.FormatInt(i, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(left) != maxTemplates {
		t.Errorf("%d templates, want %d: %v", len(left), maxTemplates, left)
	}
	if err := d.empty.sweep(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
