// Package prjquota limits trees of files by the project quotas of xfs and ext4, using system calls
// only: no programs and no files in /etc. Both file systems support the same calls, as do others
// with project quotas. Calls that change something require CAP_SYS_ADMIN and, for other users'
// files, CAP_FOWNER.
package prjquota

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ID is the id of a project, which inodes store. 0 means no project.
type ID uint32

// Candidate returns the nth id to try for a name: one of 2^30, outside of the small ids that
// administrators assign manually.
func Candidate(name string, n int) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, n))
	return ID(1<<30 | binary.BigEndian.Uint32(sum[:])>>2)
}

// Of returns the project of an open file or directory, and whether new entries of the directory
// become part of it.
func Of(f *os.File) (id ID, inherited bool, err error) {
	var a fsxattr
	if err := ioctl(f, getXattr, &a); err != nil {
		return 0, false, fmt.Errorf("project of %s: %w", f.Name(), err)
	}
	return ID(a.project), a.flags&projectInherit != 0, nil
}

// Assign adds an open directory and its new entries, or an open file, to a project.
func Assign(f *os.File, id ID) error {
	var a fsxattr
	if err := ioctl(f, getXattr, &a); err != nil {
		return fmt.Errorf("project of %s: %w", f.Name(), err)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	a.project = uint32(id)
	a.flags &^= projectInherit
	if info.IsDir() && id != 0 {
		a.flags |= projectInherit
	}
	if err := ioctl(f, setXattr, &a); err != nil {
		return fmt.Errorf("move %s into project %d: %w", f.Name(), id, err)
	}
	return nil
}

// State is the state of project quotas on a mount.
type State struct {
	Accounted bool // usage is accounted
	Enforced  bool // limits are enforced
}

// StateOf returns the state of the file system that contains f. Both fields are false if the file
// system or the kernel does not support project quotas.
func StateOf(f *os.File) (State, error) {
	s := stateV{version: 1}
	err := call(f, getState, 0, unsafe.Pointer(&s))
	if lacking(err) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("state of project quotas: %w", err)
	}
	return State{Accounted: s.flags&projectAccounted != 0, Enforced: s.flags&projectEnforced != 0}, nil
}

// Quota has the limits and the usage of a project. A limit of 0 means unlimited, as in the kernel.
type Quota struct {
	MaxBytes, MaxInodes int64
	Bytes, Inodes       int64 // including the tree's own directory
}

// Get returns a project's quota on the file system that contains f. All values of an unused project
// are zero.
func Get(f *os.File, id ID) (Quota, error) {
	var b block
	err := call(f, getQuota, id, unsafe.Pointer(&b))
	if errors.Is(err, unix.ENOENT) { // xfs has no record of it
		return Quota{}, nil
	}
	if err != nil {
		return Quota{}, fmt.Errorf("quota of project %d: %w", id, err)
	}
	return Quota{
		MaxBytes: int64(b.hardBlocks) << unitBits, MaxInodes: int64(b.hardInodes),
		Bytes: int64(b.space), Inodes: int64(b.inodes),
	}, nil
}

// Limit replaces a project's limits; 0 means unlimited. Bytes are rounded to units of 1 KiB and, on
// xfs, to blocks of the file system: see Round.
func Limit(f *os.File, id ID, bytes, inodes int64) error {
	b := block{
		hardBlocks: uint64(bytes) >> unitBits, hardInodes: uint64(inodes),
		valid: validLimits, // including the soft limits, which are removed
	}
	if err := call(f, setQuota, id, unsafe.Pointer(&b)); err != nil {
		return fmt.Errorf("limit project %d: %w", id, err)
	}
	return nil
}

// Round returns the largest limit not above bytes that the file system of f can store. Files occupy
// whole blocks, so it refuses the same writes.
func Round(f *os.File, bytes int64) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0, fmt.Errorf("block size of %s: %w", f.Name(), err)
	}
	size := max(st.Frsize, 1<<unitBits)
	return bytes - bytes%size, nil
}

// lacking reports whether an error means that the file system or the kernel has no project quotas.
func lacking(err error) bool {
	for _, e := range []error{unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOTTY, unix.ENOTBLK, unix.ENODEV, unix.ESRCH} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
