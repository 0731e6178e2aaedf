package image

import (
	"errors"
	"fmt"
	"os"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// attach attaches a file to a block device, which is detached with its last user.
func attach(f *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range 64 { // others attach devices at the same time
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no btrfs image: all loop devices are taken (%v): %w", err, errdefs.ErrUnavailable)
		}
		device, err := openLoop(number)
		if err != nil {
			return nil, err
		}
		config := &unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		err = unix.IoctlLoopConfigure(int(device.Fd()), config)
		if err == nil {
			return device, nil
		}
		err = errors.Join(fmt.Errorf("attach %s: %w", device.Name(), err), device.Close())
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no btrfs image: others take every loop device: %w", errdefs.ErrUnavailable)
}

// openLoop opens a device, and creates its node if there is no udev to do so.
func openLoop(number int) (*os.File, error) {
	name := fmt.Sprintf("/dev/loop%d", number)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	const loopMajor = 7
	if err := unix.Mknod(name, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, uint32(number)))); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return os.OpenFile(name, os.O_RDWR, 0)
}
