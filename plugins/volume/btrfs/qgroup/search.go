package qgroup

import (
	"encoding/binary"
	"math"
	"os"
)

// From linux/btrfs_tree.h.
const (
	rootTree    = 1
	quotaTree   = 8
	rootRef     = 156
	groupStatus = 240
	groupInfo   = 242
	groupLimit  = 244
)

// span is a range of items of one kind and object; quota items have object 0.
type span struct {
	kind     uint32
	object   uint64
	from, to uint64
}

type searchArgs struct {
	tree                     uint64
	minObject, maxObject     uint64
	minOffset, maxOffset     uint64
	_                        uint64
	maxTransid               uint64
	minKind, maxKind, amount uint32
	_                        uint32
	_                        [4]uint64
	items                    [4096 - 104]byte
}

const itemHeader = 32 // transid, object, offset: 8 bytes each; kind, length: 4 bytes each

// search calls each for every item of the span, in order.
func search(dir *os.File, tree uint64, s span, each func(offset uint64, item []byte)) error {
	for {
		args := searchArgs{
			tree: tree, minObject: s.object, maxObject: s.object, minOffset: s.from, maxOffset: s.to, maxTransid: math.MaxUint64,
			minKind: s.kind, maxKind: s.kind, amount: math.MaxUint32,
		}
		if err := ioctl(dir, iocSearch, &args); err != nil {
			return err
		}
		if args.amount == 0 {
			return nil
		}
		last, rest := s.from, args.items[:]
		for range args.amount {
			last = binary.LittleEndian.Uint64(rest[16:])
			end := itemHeader + int(binary.LittleEndian.Uint32(rest[28:]))
			each(last, rest[itemHeader:end])
			rest = rest[end:]
		}
		if last >= s.to {
			return nil
		}
		s.from = last + 1
	}
}
