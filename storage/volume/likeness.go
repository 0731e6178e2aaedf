package volume

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
)

// link copies a symbolic link as a link.
func link(from, to *os.File, name, as string, st *unix.Stat_t) error {
	text := make([]byte, folderpath.MaxPath)
	n, err := unix.Readlinkat(int(from.Fd()), name, text)
	if errors.Is(err, unix.EINVAL) { // no longer a link
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(text[:n]), int(to.Fd()), as); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return errors.Join(chown(to, as, st), times(to, as, st))
}

func fifo(to *os.File, as string, st *unix.Stat_t) error {
	err := unix.Mknodat(int(to.Fd()), as, unix.S_IFIFO|st.Mode&0o777, 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return errors.Join(chown(to, as, st), unix.Fchmodat(int(to.Fd()), as, modeOf(st)&0o7777, 0), times(to, as, st))
}

func times(dir *os.File, name string, st *unix.Stat_t) error {
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// chown sets owner and group, unless the proxy lacks the privilege to do so.
func chown(dir *os.File, name string, st *unix.Stat_t) error {
	err := unix.Fchownat(int(dir.Fd()), name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}

// modeOf returns the mode of a copy. A copied file loses its set-uid and set-gid bits, which a
// container could have set as root. Directories keep the bit that passes their group on.
func modeOf(st *unix.Stat_t) uint32 {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return st.Mode &^ unix.S_ISUID
	}
	return st.Mode &^ (unix.S_ISUID | unix.S_ISGID)
}

// finish copies the attributes of a file or directory: the owner before the mode, because a
// change of owner clears bits, and the times last.
func finish(from, to *os.File, st *unix.Stat_t) error {
	if err := chown(to, "", st); err != nil {
		return err
	}
	if err := unix.Fchmod(int(to.Fd()), modeOf(st)&0o7777); err != nil {
		return err
	}
	if err := attributes(from, to); err != nil {
		return err
	}
	at := "/proc/self/fd/" + strconv.Itoa(int(to.Fd()))
	return unix.UtimesNanoAt(unix.AT_FDCWD, at, []unix.Timespec{st.Atim, st.Mtim}, 0)
}

const maxAttributes = 64 << 10 // bytes of names, and of one value: the kernel's limit

// attributes copies the extended attributes that users can set, including access lists.
func attributes(from, to *os.File) error {
	size, err := unix.Flistxattr(int(from.Fd()), nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	list := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(int(from.Fd()), list)
	if err != nil {
		return err
	}
	value := make([]byte, maxAttributes)
	for name := range strings.SplitSeq(string(list[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") {
			continue
		}
		n, err := unix.Fgetxattr(int(from.Fd()), name, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value[:n], 0)
		}
		if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return nil
}
