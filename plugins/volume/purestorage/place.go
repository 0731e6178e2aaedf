package main

import (
	"errors"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// immutable is FS_IMMUTABLE_FL: nothing can be made in such a directory, by no one, but
// it can be mounted over.
const immutable = 0x10

// mounted reports whether a scope's directory is another file system than the one it lies
// in. An absent one is not.
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

// place makes the directory that a scope's file system will be mounted on, where an
// automounter does not. Before it is mounted no one can write there, where the file
// system below can refuse that: it would be lost from sight.
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

// seal makes a mount point immutable, or takes that away.
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
		return nil // it cannot be had here
	}
	return driver.Error("mount point of "+scope, err)
}

// unplace removes the mount point of a scope that is gone. One that is mounted still
// stays: anyone who mounted it unmounts it.
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
