// Package prjquota limits trees of files by the project quotas of xfs and ext4,
// with the kernel's own calls: no programs, no files in /etc. Both file systems
// answer the same calls, and so does whatever else has project quotas. Those that
// change something need CAP_SYS_ADMIN and, for files of others, CAP_FOWNER.
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

// ID is a project: a number on inodes. 0 is not a project.
type ID uint32

// Candidate is the nth number to try for something of a name: one of 2^30, away from
// the small ones that administrators give out by hand.
func Candidate(name string, n int) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, n))
	return ID(1<<30 | binary.BigEndian.Uint32(sum[:])>>2)
}

// Of returns the project of an open file or directory, and whether what is made
// in the directory becomes part of it.
func Of(f *os.File) (id ID, inherited bool, err error) {
	var a fsxattr
	if err := ioctl(f, getXattr, &a); err != nil {
		return 0, false, fmt.Errorf("project of %s: %w", f.Name(), err)
	}
	return ID(a.project), a.flags&projectInherit != 0, nil
}

// Assign puts an open directory into a project, and with it what will be made in
// it; or an open file.
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
		return fmt.Errorf("put %s into project %d: %w", f.Name(), id, err)
	}
	return nil
}

// State is what a mount does with project quotas.
type State struct {
	Accounted bool // usage is counted
	Enforced  bool // limits stop writers
}

// StateOf asks the file system that f lies on. One without project quotas, or
// whose kernel has none, does neither.
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

// Quota is a project's limits and usage. A limit of 0 is none: the kernel has no
// other word for it.
type Quota struct {
	MaxBytes, MaxInodes int64
	Bytes, Inodes       int64 // the tree's own directory among them
}

// Get reads a project's quota on the file system that f lies on. A project that
// no one has used is all zeros.
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

// Limit replaces a project's limits; 0 is none. Bytes are kept in units of 1 KiB
// and, on xfs, of the file system's blocks: Round says what will be kept.
func Limit(f *os.File, id ID, bytes, inodes int64) error {
	b := block{
		hardBlocks: uint64(bytes) >> unitBits, hardInodes: uint64(inodes),
		valid: validLimits, // the soft limits too: they are none
	}
	if err := call(f, setQuota, id, unsafe.Pointer(&b)); err != nil {
		return fmt.Errorf("limit project %d: %w", id, err)
	}
	return nil
}

// Round returns the largest limit not above bytes that the file system of f
// keeps as it is. Files take whole blocks, so that it stops the same writes.
func Round(f *os.File, bytes int64) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0, fmt.Errorf("block size of %s: %w", f.Name(), err)
	}
	size := max(st.Frsize, 1<<unitBits)
	return bytes - bytes%size, nil
}

// lacking tells that a file system, or the kernel, has no project quotas.
func lacking(err error) bool {
	for _, e := range []error{unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOTTY, unix.ENOTBLK, unix.ENODEV, unix.ESRCH} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
