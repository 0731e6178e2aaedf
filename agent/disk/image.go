package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// imageOf returns the file that contains the file system of a directory.
func imageOf(path string) string { return path + ".img" }

// image mounts a new file system on a directory.
func (d *Disks) image(ctx context.Context, path string, bytes int64) error {
	file := imageOf(path)
	if err := d.empty.make(ctx, bytes, file); err != nil {
		return err
	}
	return mount(file, path)
}

// format creates a file system in a sparse file. It takes 300 KiB on disk for 20 GiB, because no
// space is reserved for growth and its tables are adjacent. It has no journal: the containers do
// not survive a crash of the machine.
func format(ctx context.Context, file string, bytes int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(f.Truncate(bytes), f.Close())
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-O", "^has_journal,^resize_inode", "-m", "0", "-i", fmt.Sprint(bytesPerInode),
		"-E", "lazy_itable_init=1,packed_meta_blocks=1,nodiscard,root_owner=0:0", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	return nil
}

// mount attaches a file to a loop device and mounts it; the device is detached with the mount.
// Blocks that are freed inside become holes in the file, so that the disk gets their space back.
func mount(file, at string) error {
	dev, err := attach(file)
	if err != nil {
		return fmt.Errorf("loop device for %s: %w", file, err)
	}
	defer dev.Close() // the mount keeps the device attached
	err = unix.Mount(dev.Name(), at, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, "noinit_itable,discard")
	if err != nil {
		return fmt.Errorf("mount %s: %w", file, err)
	}
	// The directory is owned by root of the host and useless to the container.
	return os.Remove(filepath.Join(at, "lost+found"))
}

// attach attaches the file to a free loop device.
func attach(file string) (*os.File, error) {
	backing, err := os.OpenFile(file, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		dev, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		copy(config.Info.File_name[:], filepath.Base(file))
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &config)
		if err == nil {
			return dev, nil
		}
		dev.Close()
		if !errors.Is(err, unix.EBUSY) { // another process took the device first
			return nil, err
		}
	}
}

// isMount reports whether the directory is a mount point.
func isMount(path string) (bool, error) {
	var own, above unix.Stat_t
	if err := unix.Lstat(path, &own); err != nil {
		return false, err
	}
	if err := unix.Lstat(filepath.Dir(path), &above); err != nil {
		return false, err
	}
	return own.Dev != above.Dev, nil
}

// unmount unmounts a directory. It waits for a moment for processes that still have files open,
// such as an exiting shim; then it detaches the file system, which goes away with its last user.
func unmount(path string) error {
	const timeout = 2 * time.Second
	until := time.Now().Add(timeout)
	for {
		mounted, err := isMount(path)
		if errors.Is(err, unix.ENOENT) || err == nil && !mounted {
			return nil
		}
		if err != nil {
			return err
		}
		flags := 0
		if time.Now().After(until) {
			flags = unix.MNT_DETACH
		}
		err = unix.Unmount(path, flags)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
