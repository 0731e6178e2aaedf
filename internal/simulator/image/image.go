// Package image creates a btrfs file system in a sparse file, for a test or a demonstration. It
// requires root, a free loop device, mkfs.btrfs and a kernel with btrfs; if one is missing, the
// error of Make names it.
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

// Size is large enough for every test. The file is sparse and uses only the space that is written.
const Size = 16 << 30

// Image is a mounted file system.
type Image struct {
	Mount string
	dir   string
	lock  *os.File
}

// Make creates and mounts an image. It returns Unavailable if this machine does not support it. It
// first removes the remains of killed processes.
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

// possible returns an Unavailable error if something is missing.
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
	// The users of sessions must be able to enter the directory.
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
	defer device.Close()       // autoclear: the mount keeps the device attached
	const options = "commit=2" // seconds until quotas include written data; the default is 30
	if err := unix.Mount(device.Name(), i.Mount, "btrfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, options); err != nil {
		return fmt.Errorf("mount %s: %w", device.Name(), err)
	}
	return os.Chmod(i.Mount, 0o755)
}

// Close unmounts and removes the image. It waits for a while for files that are still open. A
// process that keeps a file open longer keeps the space in use, but not the name.
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
	// This is not RemoveAll, which would enter a file system that is still mounted.
	errs := []error{os.Remove(filepath.Join(dir, file)), os.Remove(at), os.Remove(filepath.Join(dir, leftover.File)), os.Remove(dir)}
	for n, err := range errs {
		if os.IsNotExist(err) {
			errs[n] = nil
		}
	}
	return errors.Join(errs...)
}

// sweep removes the images of processes that have ended, whose locks are free.
func sweep() { leftover.Sweep(prefix, func(dir string) { _ = discard(dir) }) }
