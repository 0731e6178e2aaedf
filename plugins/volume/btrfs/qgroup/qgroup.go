// Package qgroup calls btrfs about subvolumes and their quota groups, with ioctls in pure Go and
// without the btrfs program. The btrfs plugin and the simulators of storage products import it, for
// directories with enforced limits.
//
// Every subvolume has a quota group with its own number, 0/ID. Its limit applies to referenced
// bytes: the blocks of the subvolume's files and metadata, including those shared with other
// subvolumes. A write that would exceed the limit fails with EDQUOT, for root as well. Metadata
// counts, so at the limit even touch fails; rm works.
//
// The usage is that of the kernel's last commit, at most 30 s ago; [Sync] makes it current, and
// [Reserved] returns the bytes written since. Reading usage, limits and quota status requires
// CAP_SYS_ADMIN.
//
// File arguments of these functions are open directories on the file system; O_PATH is not
// sufficient.
package qgroup

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// ID is the number of a quota group: that of a subvolume or, with a level above zero, one that
// contains others.
type ID uint64

// Level returns 0 for the group of a subvolume.
func (id ID) Level() int { return int(id >> 48) }

func (id ID) String() string { return fmt.Sprintf("%d/%d", id.Level(), uint64(id)&(1<<48-1)) }

// Group is one quota group.
type Group struct {
	ID         ID
	Referenced int64  // bytes reachable from the subvolume
	Exclusive  int64  // the part that no other subvolume shares
	Limit      *int64 // of referenced bytes; nil = none
}

// Read returns the group of a subvolume. It returns ENOENT without quotas or group.
func Read(dir *os.File, id ID) (Group, error) {
	found, err := read(dir, id, id)
	if err != nil {
		return Group{}, fmt.Errorf("read quota group %v: %w", id, err)
	}
	if len(found) == 0 {
		return Group{}, fmt.Errorf("read quota group %v: %w", id, unix.ENOENT)
	}
	return found[0], nil
}

// All returns the groups of all subvolumes by number, including those of deleted subvolumes. It
// returns ENOENT without quotas.
func All(dir *os.File) ([]Group, error) {
	found, err := read(dir, 0, 1<<48-1)
	if err != nil {
		return nil, fmt.Errorf("read quota groups: %w", err)
	}
	return found, nil
}

// read combines usage and limits, which are two kinds of items, each ordered by group.
func read(dir *os.File, from, to ID) ([]Group, error) {
	var found []Group
	at := map[ID]int{}
	err := search(dir, quotaTree, span{kind: groupInfo, from: uint64(from), to: uint64(to)}, func(offset uint64, item []byte) {
		// generation, referenced, referenced compressed, exclusive, …
		if len(item) >= 40 {
			at[ID(offset)] = len(found)
			found = append(found, Group{ID: ID(offset), Referenced: amount(item[8:]), Exclusive: amount(item[24:])})
		}
	})
	if err != nil {
		return nil, err
	}
	err = search(dir, quotaTree, span{kind: groupLimit, from: uint64(from), to: uint64(to)}, func(offset uint64, item []byte) {
		// flags, max referenced, …
		i, ok := at[ID(offset)]
		if ok && len(item) >= 16 && binary.LittleEndian.Uint64(item)&limitReferenced != 0 {
			n := amount(item[8:])
			found[i].Limit = &n
		}
	})
	return found, err
}

// amount decodes a number of bytes and limits it to the positive range.
func amount(b []byte) int64 {
	return int64(min(binary.LittleEndian.Uint64(b), math.MaxInt64))
}

// SetLimit limits the referenced bytes of a group; nil removes the limit, and zero refuses all
// writes. A limit below the usage keeps the data and refuses further writes. The directory must be
// outside of the subvolume: the call itself needs some space in the subvolume of the directory, and
// at the limit there is none.
func SetLimit(dir *os.File, id ID, bytes *int64) error {
	args := limitArgs{group: uint64(id), limit: referenced(bytes)}
	if err := ioctl(dir, iocLimit, &args); err != nil {
		return fmt.Errorf("limit quota group %v: %w", id, err)
	}
	return nil
}

// Remove removes the group of a deleted subvolume. Newer kernels remove it themselves after its
// last block was freed; before that, Remove returns EBUSY.
func Remove(dir *os.File, id ID) error {
	if err := ioctl(dir, iocGroup, &groupArgs{group: uint64(id)}); err != nil {
		return fmt.Errorf("remove quota group %v: %w", id, err)
	}
	return nil
}
