// Package image makes a btrfs file system in a sparse file, for the time of a
// test or a demonstration. It needs root, a free loop device, mkfs.btrfs and a
// kernel with btrfs; where one is missing Make says which.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testvm/leftover"
)

// Size is large enough for every test: the file is sparse, and takes only what
// is written.
const Size = 16 << 30

// Image is a mounted file system.
type Image struct {
	Mount string
	dir   string
	lock  *os.File
}

// Make makes and mounts an image. Its error is Unavailable where that cannot
// be done. What processes left that were killed is removed first.
func Make(ctx context.Context) (*Image, error) {
	if err := possible(); err != nil {
		return nil, err
	}
	sweep()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	i := &Image{dir: dir, Mount: filepath.Join(dir, mount)}
	if err := i.make(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make btrfs image: %w", err), i.Close())
	}
	return i, nil
}

const (
	prefix = "berth-image-"
	mount  = "mount"
	file   = "image"

	mkfs = "/usr/sbin/mkfs.btrfs" // not in everyone's PATH
)

// possible says what is missing.
func possible() error {
	unavailable := func(format string, args ...any) error {
		return fmt.Errorf("no btrfs image: "+format+": %w", append(args, errdefs.ErrUnavailable)...)
	}
	if os.Geteuid() != 0 {
		return unavailable("mounting needs root")
	}
	if _, err := exec.LookPath(mkfs); err != nil {
		return unavailable("%s is not installed (package btrfs-progs)", mkfs)
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || !strings.Contains(string(known), "\tbtrfs\n") {
		return unavailable("the kernel has no btrfs loaded")
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return unavailable("no loop devices: %v", err)
	}
	return control.Close()
}

func (i *Image) make(ctx context.Context) error {
	var err error
	if i.lock, err = leftover.Lock(i.dir); err != nil {
		return err
	}
	// Users of a session must be able to pass.
	if err := errors.Join(os.Chmod(i.dir, 0o755), os.Mkdir(i.Mount, 0o755)); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(i.dir, file), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(Size); err != nil {
		return err
	}
	format := exec.CommandContext(ctx, mkfs, "-q", "-K", "-m", "single", "-d", "single", f.Name())
	if out, err := format.CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.btrfs: %w: %s", err, out)
	}
	device, err := attach(f)
	if err != nil {
		return err
	}
	defer device.Close()       // autoclear: the mount holds it from here
	const options = "commit=2" // seconds until quotas count what was written; 30 by itself
	if err := unix.Mount(device.Name(), i.Mount, "btrfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, options); err != nil {
		return fmt.Errorf("mount %s: %w", device.Name(), err)
	}
	return os.Chmod(i.Mount, 0o755)
}

// Close unmounts and removes the image. It waits a while for files that are
// still open; a process that keeps one longer keeps the space, not the name.
func (i *Image) Close() error {
	err := discard(i.dir)
	if i.lock != nil {
		err = errors.Join(err, i.lock.Close())
	}
	return err
}

func discard(dir string) error {
	at := filepath.Join(dir, mount)
	if err := leftover.Unmount(at); err != nil {
		return err
	}
	// Not RemoveAll: it would go into what is mounted after all.
	errs := []error{os.Remove(filepath.Join(dir, file)), os.Remove(at), os.Remove(filepath.Join(dir, leftover.File)), os.Remove(dir)}
	for n, err := range errs {
		if os.IsNotExist(err) {
			errs[n] = nil
		}
	}
	return errors.Join(errs...)
}

// sweep removes the images of processes that are gone: their locks are free.
func sweep() { leftover.Sweep(prefix, func(dir string) { _ = discard(dir) }) }
