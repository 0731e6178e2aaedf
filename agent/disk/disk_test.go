package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

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

// TestLimit writes until the limits of bytes and of files are reached.
func TestLimit(t *testing.T) {
	d, at := disks(t)
	limited(t, d, at)
}

// TestMakeAgain creates a disk where one exists, as after an agent was killed. The new one is
// empty, and removing it twice is not an error.
func TestMakeAgain(t *testing.T) {
	d, at := disks(t)
	madeAgain(t, d, at)
}

// TestVMQuota checks that project quotas are preferred to images on file systems that have them.
func TestVMQuota(t *testing.T) {
	m := vmtest.Machine{Machine: testvm.Machine{Disks: []testvm.Disk{testvm.XFS("xfs"), testvm.Ext4("ext4")}}}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		for _, name := range []string{"xfs", "ext4"} {
			t.Run(name, func(t *testing.T) {
				dir := p.Mount(name)
				d, probe, err := New(t.Context(), dir, slog.New(slog.DiscardHandler))
				if err != nil || d.way != Quota || !probe.Ok {
					t.Fatalf("limits are kept by %s: %v, %v", d.way, probe, err)
				}
				t.Run("limit", func(t *testing.T) { limited(t, d, filepath.Join(dir, "limited")) })
				t.Run("again", func(t *testing.T) { madeAgain(t, d, filepath.Join(dir, "again")) })
				t.Run("neighbors", func(t *testing.T) { neighbors(t, d, dir) })
			})
		}
	})
}

// neighbors fills one disk through a directory that is created later, as a container's writable
// layer is, and checks that the other disks keep their full space.
func neighbors(t *testing.T, d *Disks, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, at := range []string{a, b} {
		if err := d.Make(t.Context(), at, Min); err != nil {
			t.Fatal(err)
		}
	}
	layer := filepath.Join(a, "upper", "var")
	if err := os.MkdirAll(layer, 0o755); err != nil {
		t.Fatal(err)
	}
	if n, err := fill(filepath.Join(layer, "f")); !full(err) || n > Min {
		t.Errorf("%d bytes were written, %v", n, err)
	}
	if u, err := d.Usage(b); err != nil || u.Full() || u.Bytes > Min/10 {
		t.Errorf("usage of the other disk: %+v, %v", u, err)
	}
	if err := os.WriteFile(filepath.Join(b, "f"), make([]byte, Min/2), 0o600); err != nil {
		t.Error(err)
	}
	if err := errors.Join(d.Remove(a), d.Remove(b)); err != nil {
		t.Fatal(err)
	}
	if err := d.Make(t.Context(), a, 2*Min); err != nil { // its project id is free again
		t.Fatal(err)
	}
	if u, err := d.Usage(a); err != nil || u.MaxBytes != 2*Min || u.Full() {
		t.Errorf("usage of a larger disk: %+v, %v", u, err)
	}
	if err := d.Remove(a); err != nil {
		t.Fatal(err)
	}
}

// fill writes a file of twice the smallest limit and returns the number of bytes that were written.
func fill(path string) (n int64, err error) {
	err = confined(func() error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		n, err = io.Copy(f, io.LimitReader(zeros{}, 2*Min))
		return errors.Join(err, f.Sync(), f.Close())
	})
	return n, err
}

// touch creates empty files until this fails.
func touch(at string, files int) error {
	return confined(func() error {
		for i := range files {
			if err := os.WriteFile(filepath.Join(at, strconv.Itoa(i)), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
}

// confined runs f in a thread without CAP_SYS_RESOURCE. No container has this capability, which
// exempts from the quotas of ext4.
func confined(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&head, &data[0])
		data[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
		if err == nil {
			err = unix.Capset(&head, &data[0])
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func limited(t *testing.T, d *Disks, at string) {
	if err := d.Make(t.Context(), at, Min); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(at, "f")
	if n, err := fill(name); !full(err) || n > Min || n < Min*9/10 {
		t.Errorf("%d bytes were written, %v", n, err)
	}
	if u, err := d.Usage(at); err != nil || !u.Full() || u.MaxBytes > Min {
		t.Errorf("usage of a full disk: %+v, %v", u, err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	// xfs frees the blocks of a removed file later.
	wait.For(t, func() error {
		u, err := d.Usage(at)
		if err != nil {
			t.Fatal(err)
		}
		if u.Full() {
			return fmt.Errorf("usage of an empty disk: %+v", u)
		}
		return nil
	})
	err := touch(at, 2*Min/bytesPerInode)
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

func madeAgain(t *testing.T, d *Disks, at string) {
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

// TestTemplates creates disks of several sizes, the first of each by mkfs and the next ones from
// its template. Each has its size, is consistent, and shares no data with the others.
func TestTemplates(t *testing.T) {
	hideMounts(t)
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

// hideMounts gives the test its own mount namespace. Any process that creates a mount namespace
// copies all mounts it sees, and a file system is written back only after its last mount is gone.
func hideMounts(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mount namespaces need root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
