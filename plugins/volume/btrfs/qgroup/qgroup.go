// Package qgroup speaks to btrfs about subvolumes and their quota groups: pure
// Go ioctls, no btrfs program. What wants directories that refuse bytes past a
// limit imports it: the btrfs plugin, and the simulators of storage products.
//
// Every subvolume has a quota group of its own number, 0/ID. Its limit is on
// referenced bytes: what the subvolume's files and metadata take, blocks that
// it shares with others included. A write that would pass the limit fails with
// EDQUOT, for root too. Metadata counts, so at the limit even touch fails; rm
// works.
//
// Figures are what the kernel wrote with its last commit, at most 30 s ago;
// [Sync] makes them current, [Reserved] says what was written since. Reading
// them, limits and quotas themselves need CAP_SYS_ADMIN.
//
// Files given to these functions are open directories on the file system;
// O_PATH is not enough.
package qgroup

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// ID is a quota group's number: a subvolume's, or with a level above zero one
// that gathers others.
type ID uint64

// Level is 0 for a subvolume's own group.
func (id ID) Level() int { return int(id >> 48) }

func (id ID) String() string { return fmt.Sprintf("%d/%d", id.Level(), uint64(id)&(1<<48-1)) }

// Group is one quota group.
type Group struct {
	ID         ID
	Referenced int64  // bytes reachable from the subvolume
	Exclusive  int64  // of these, what no other shares
	Limit      *int64 // of referenced bytes; nil = none
}

// Read returns the group of a subvolume. Without quotas or group, its error is
// ENOENT.
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

// All returns the groups of all subvolumes, by number; also those whose
// subvolume is gone. Without quotas, its error is ENOENT.
func All(dir *os.File) ([]Group, error) {
	found, err := read(dir, 0, 1<<48-1)
	if err != nil {
		return nil, fmt.Errorf("read quota groups: %w", err)
	}
	return found, nil
}

// read gathers figures and limits: two kinds of items, each ordered by group.
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

// amount reads a number of bytes and keeps it positive.
func amount(b []byte) int64 {
	return int64(min(binary.LittleEndian.Uint64(b), math.MaxInt64))
}

// SetLimit bounds the referenced bytes of a group; nil lifts the bound, zero
// refuses every byte. A limit below what is there keeps it and refuses more. The
// directory must lie outside of the subvolume: the call itself takes a little
// space where it lies, and at the limit there is none.
func SetLimit(dir *os.File, id ID, bytes *int64) error {
	args := limitArgs{group: uint64(id), limit: referenced(bytes)}
	if err := ioctl(dir, iocLimit, &args); err != nil {
		return fmt.Errorf("limit quota group %v: %w", id, err)
	}
	return nil
}

// Remove forgets the group of a subvolume that is gone. Newer kernels do it
// themselves once the last of its blocks is freed; before that it is EBUSY.
func Remove(dir *os.File, id ID) error {
	if err := ioctl(dir, iocGroup, &groupArgs{group: uint64(id)}); err != nil {
		return fmt.Errorf("remove quota group %v: %w", id, err)
	}
	return nil
}
