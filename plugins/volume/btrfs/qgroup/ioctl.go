package qgroup

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctl numbers of linux/btrfs.h: direction, size of the argument, 0x94, number. Direction and size
// have these positions on all architectures except mips, powerpc and sparc.
const (
	none  = 0 << 30
	write = 1 << 30
	back  = 2 << 30
	magic = 0x94 << 8

	page = 4096 << 16 // most arguments are padded to this size

	iocSync          = none | magic | 8
	iocDestroy       = write | page | magic | 15
	iocSearch        = back | write | page | magic | 17
	iocLookup        = back | write | page | magic | 18
	iocSnapshot      = write | page | magic | 23
	iocCreate        = write | page | magic | 24
	iocInfo          = back | 1024<<16 | magic | 31
	iocControl       = back | write | 16<<16 | magic | 40
	iocGroup         = write | 16<<16 | magic | 42
	iocLimit         = back | 48<<16 | magic | 43
	iocRescan        = write | 64<<16 | magic | 44
	iocRescanStatus  = back | 64<<16 | magic | 45
	limitReferenced  = 1 << 0
	inheritSetLimits = 1 << 0
	subvolReadOnly   = 1 << 1
	subvolInherit    = 1 << 2
)

// lifted is the value that means no limit.
const lifted = 1<<64 - 1

type limit struct {
	flags, maxReferenced uint64
	_                    [3]uint64 // limits of exclusive bytes and of reservations, which no kernel implements
}

func referenced(bytes *int64) limit {
	l := limit{flags: limitReferenced, maxReferenced: lifted}
	if bytes != nil {
		l.maxReferenced = uint64(*bytes)
	}
	return l
}

type limitArgs struct {
	group uint64
	limit limit
}

type groupArgs struct {
	_     uint64 // 0 removes the limit
	group uint64
}

type controlArgs struct {
	command uint64
	_       uint64
}

type rescanArgs struct {
	flags uint64
	_     [7]uint64
}

// inherit sets the limit of a new subvolume's group.
type inherit struct {
	flags uint64
	_     [3]uint64 // parent groups and groups to copy from: none
	limit limit
}

type subvolArgs struct {
	fd          int64
	_           uint64
	flags       uint64
	inheritSize uint64
	inherit     *inherit
	_           [2]uint64
	name        [4040]byte
}

type nameArgs struct {
	_    int64
	name [4088]byte
}

type lookupArgs struct {
	tree, object uint64
	_            [4080]byte
}

type infoArgs struct {
	_    [2]uint64
	fsid [16]byte
	_    [992]byte
}

// ioctl repeats the call while signals interrupt it. The argument must not move: the caller must
// keep pointers inside it alive.
func ioctl[T any](f *os.File, request uint, arg *T) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = conn.Control(func(fd uintptr) {
		for {
			_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(request), uintptr(unsafe.Pointer(arg)))
			if errno != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}
