package prjquota

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/fs.h.
const (
	getXattr       = 0x801c581f // FS_IOC_FSGETXATTR
	setXattr       = 0x401c5820 // FS_IOC_FSSETXATTR
	projectInherit = 0x200      // FS_XFLAG_PROJINHERIT
)

// fsxattr is struct fsxattr.
type fsxattr struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

// From linux/quota.h and linux/dqblk_xfs.h.
const (
	projectType = 2 // PRJQUOTA
	getQuota    = 0x800007
	setQuota    = 0x800008
	getState    = 'X'<<8 + 8 // Q_XGETQSTATV, which all file systems support

	unitBits         = 10 // QIF_DQBLKSIZE_BITS
	validLimits      = 5  // QIF_BLIMITS | QIF_ILIMITS
	projectAccounted = 1 << 4
	projectEnforced  = 1 << 5
)

// block is struct if_dqblk.
type block struct {
	hardBlocks, softBlocks, space  uint64
	hardInodes, softInodes, inodes uint64
	blockGraceEnds, inodesGraceEnd uint64
	valid                          uint32
	_                              uint32
}

// stateV is struct fs_quota_statv.
type stateV struct {
	version int8
	_       uint8
	flags   uint16
	incore  uint32
	files   [3]struct {
		inode, blocks uint64
		extents, _    uint32
	}
	timeLimits [3]int32
	warnLimits [4]uint16
	_          uint32
	_          [7]uint64
}

func ioctl(f *os.File, request uintptr, a *fsxattr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(a)))
	if errno != 0 {
		return errno
	}
	return nil
}

// call performs a quota call for the file system of f: by the file if the kernel supports it
// (5.14), or else by the block device.
func call(f *os.File, what uint32, id ID, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), command(what), uintptr(id), uintptr(data), 0, 0)
	if errno == unix.ENOSYS {
		return callDevice(f, what, id, data)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

func command(what uint32) uintptr { return uintptr(what)<<8 | projectType }

func callDevice(f *os.File, what uint32, id ID, data unsafe.Pointer) error {
	path, err := device(f)
	if err != nil {
		return err
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL, command(what), uintptr(unsafe.Pointer(name)), uintptr(id), uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// device returns the node of the block device that contains f. It verifies that the path is that
// device, because a quota call would accept any device.
func device(f *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", fmt.Errorf("device of %s: %w", f.Name(), err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	link, err := os.Readlink("/sys/dev/block/" + number)
	if errors.Is(err, os.ErrNotExist) {
		return "", unix.ENODEV // a network or stacked file system
	}
	if err != nil {
		return "", fmt.Errorf("device %s: %w", number, err)
	}
	for _, path := range []string{"/dev/" + filepath.Base(link), "/dev/block/" + number} {
		var node unix.Stat_t
		if unix.Stat(path, &node) == nil && node.Mode&unix.S_IFMT == unix.S_IFBLK && node.Rdev == uint64(st.Dev) {
			return path, nil
		}
	}
	return "", fmt.Errorf("device %s has no node in /dev: %w", number, unix.ENODEV)
}
