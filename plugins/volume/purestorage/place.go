package main

import (
	"errors"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// immutable is FS_IMMUTABLE_FL: nothing can be created in such a directory, even by root, but it
// can be a mount point.
const immutable = 0x10

// mounted reports whether a scope's directory is the root of another file system than its parent's.
// It reports false for a missing directory.
func (v *own) mounted(scope string) (bool, error) {
	d, err := v.OpenTree(scope)
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer d.Close()
	root, err := v.Root()
	if err != nil {
		return false, err
	}
	defer root.Close()
	var here, above unix.Stat_t
	if err := errors.Join(unix.Fstat(int(d.Fd()), &here), unix.Fstat(int(root.Fd()), &above)); err != nil {
		return false, driver.Error("mount point of "+scope, err)
	}
	return here.Dev != above.Dev, nil
}

// place creates the mount point of a scope's file system, unless an automounter does. If the parent
// file system supports it, nothing can be written there before it is mounted: such files would be
// hidden by the mount.
func (v *own) place(scope string) error {
	d, err := v.OpenTree(scope)
	if err == nil {
		return d.Close()
	}
	if status.Code(err) != codes.NotFound {
		return err
	}
	if err := v.MakeScope(scope); err != nil {
		return err
	}
	return v.seal(scope, true)
}

// seal makes a mount point immutable or mutable.
func (v *own) seal(scope string, yes bool) error {
	d, err := v.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	flags, err := unix.IoctlGetUint32(int(d.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		flags &^= immutable
		if yes {
			flags |= immutable
		}
		err = unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
	}
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		return nil // not supported here
	}
	return driver.Error("mount point of "+scope, err)
}

// unplace removes the mount point of a deleted scope. One that is still mounted stays, because its
// mount belongs to someone else.
func (v *own) unplace(scope string) error {
	mounted, err := v.mounted(scope)
	if errors.Is(err, unix.ESTALE) || mounted {
		return nil
	}
	if err != nil {
		return err
	}
	err = v.seal(scope, false)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return v.RemoveScope(scope)
}
