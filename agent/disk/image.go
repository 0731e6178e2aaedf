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

// imageOf is the file with the file system of a directory.
func imageOf(path string) string { return path + ".img" }

// image mounts a file system of its own on a directory.
func (d *Disks) image(ctx context.Context, path string, bytes int64) error {
	file := imageOf(path)
	if err := d.empty.make(ctx, bytes, file); err != nil {
		return err
	}
	return mount(file, path)
}

// format makes a file system in a sparse file, which takes 300 KiB of the disk for
// 20 GiB: nothing is reserved for a file system that grows, and its tables lie together.
// It has no journal: a machine that crashes takes its containers with it.
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

// mount attaches a file to a loop device, which goes away with the mount. Blocks that
// are freed inside become holes of the file, so that the disk has them back.
func mount(file, at string) error {
	dev, err := attach(file)
	if err != nil {
		return fmt.Errorf("loop device for %s: %w", file, err)
	}
	defer dev.Close() // the mount keeps it
	err = unix.Mount(dev.Name(), at, "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME, "noinit_itable,discard")
	if err != nil {
		return fmt.Errorf("mount %s: %w", file, err)
	}
	// No one else reads it, and root of the container must.
	return os.Remove(filepath.Join(at, "lost+found"))
}

// attach finds a free loop device and gives it the file.
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
		if !errors.Is(err, unix.EBUSY) { // another process took it in between
			return nil, err
		}
	}
}

// isMount reports whether a file system is mounted on a directory itself.
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

// unmount takes what is mounted on a directory away. Those who still have a file open in
// it, as a shim that is about to end, is waited for a moment; then the file system goes
// with its last user.
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
