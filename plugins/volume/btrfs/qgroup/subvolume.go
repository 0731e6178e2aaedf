package qgroup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// firstInode is the inode of the root directory of every subvolume.
const firstInode = 256

// IsBtrfs reports whether the file is on btrfs.
func IsBtrfs(f *os.File) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false, err
	}
	return st.Type == unix.BTRFS_SUPER_MAGIC, nil
}

// IsSubvolume reports whether dir is the root of a subvolume rather than a directory inside one.
func IsSubvolume(dir *os.File) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return false, err
	}
	ours, err := IsBtrfs(dir)
	return ours && st.Ino == firstInode, err
}

// Subvolume returns the number of the subvolume that contains f. Its group has the same number.
func Subvolume(f *os.File) (ID, error) {
	args := lookupArgs{object: firstInode}
	if err := ioctl(f, iocLookup, &args); err != nil {
		return 0, fmt.Errorf("subvolume of %s: %w", f.Name(), err)
	}
	return ID(args.tree), nil
}

// Child is a subvolume with its location.
type Child struct {
	ID, Parent ID
	Name       string // in its directory
}

// Children returns the subvolumes of the whole file system with their parents. It requires quotas,
// because it searches the children of all groups.
func Children(dir *os.File) ([]Child, error) {
	var found []Child
	var parents []ID
	err := search(dir, quotaTree, span{kind: groupInfo, to: 1<<48 - 1}, func(offset uint64, _ []byte) {
		parents = append(parents, ID(offset))
	})
	for _, parent := range parents {
		if err != nil {
			break
		}
		err = search(dir, rootTree, span{kind: rootRef, object: uint64(parent), to: math.MaxUint64}, func(child uint64, item []byte) {
			// directory, sequence, length of the name, name
			if len(item) > 18 {
				found = append(found, Child{ID: ID(child), Parent: parent, Name: string(item[18:])})
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list subvolumes: %w", err)
	}
	return found, nil
}

// Create creates a subvolume in parent with a limit from the start. It returns ENOTCONN for a limit
// if quotas are disabled.
func Create(parent *os.File, name string, limit *int64) error {
	args, err := newSubvolArgs(name, limit)
	if err != nil {
		return err
	}
	if limit != nil {
		if s, err := ReadStatus(parent); err != nil || s.Mode == Off {
			return fmt.Errorf("create subvolume %q with a limit: %w", name, errors.Join(err, unix.ENOTCONN))
		}
	}
	err = ioctl(parent, iocCreate, args)
	runtime.KeepAlive(args)
	if err != nil {
		return fmt.Errorf("create subvolume %q: %w", name, err)
	}
	return relimit(parent, name, limit)
}

// relimit sets the limit of a new subvolume again: the kernel enforces it from the start, but Read
// returns it only after a commit.
func relimit(parent *os.File, name string, limit *int64) error {
	if limit == nil {
		return nil
	}
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("limit subvolume %q: %w", name, err)
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	id, err := Subvolume(dir)
	if err != nil {
		return err
	}
	return SetLimit(parent, id, limit)
}

// Snapshot creates a subvolume in parent that shares all blocks of another one. Nested subvolumes
// are not included; they appear as empty directories.
func Snapshot(parent *os.File, name string, of *os.File, limit *int64, readOnly bool) error {
	args, err := newSubvolArgs(name, limit)
	if err != nil {
		return err
	}
	args.fd = int64(of.Fd())
	if readOnly {
		args.flags |= subvolReadOnly
	}
	err = ioctl(parent, iocSnapshot, args)
	runtime.KeepAlive(of)
	runtime.KeepAlive(args)
	if err != nil {
		return fmt.Errorf("snapshot %s as %q: %w", of.Name(), name, err)
	}
	return relimit(parent, name, limit)
}

// Delete removes a subvolume with its contents; use rmdir(2) to remove only an empty one. The space
// is freed in the background.
func Delete(parent *os.File, name string) error {
	var args nameArgs
	if err := setName(args.name[:], name); err != nil {
		return err
	}
	if err := ioctl(parent, iocDestroy, &args); err != nil {
		return fmt.Errorf("delete subvolume %q: %w", name, err)
	}
	return nil
}

func newSubvolArgs(name string, limit *int64) (*subvolArgs, error) {
	args := &subvolArgs{}
	if err := setName(args.name[:], name); err != nil {
		return nil, err
	}
	if limit != nil {
		args.flags = subvolInherit
		args.inherit = &inherit{flags: inheritSetLimits, limit: referenced(limit)}
		args.inheritSize = 72
	}
	return args, nil
}

// setName returns an error unless name is a single path element: the calls of the kernel would
// interpret a path differently.
func setName(into []byte, name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("subvolume name %.300q: %w", name, unix.EINVAL)
	}
	copy(into, name)
	return nil
}
