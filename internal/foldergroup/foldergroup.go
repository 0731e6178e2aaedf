// Package foldergroup lets every session that mounts a folder change its contents, whichever user
// its image runs as. All files in folders belong to one group: storage proxies set the group, and
// agents add the users of containers to it. One group is enough, because a container sees only its
// own mounts of a volume, and the kernel refuses writes through read-only mounts.
//
// One group is enough. What a container sees of a volume are its own mounts, and the
// kernel refuses to write through those that are read-only.
package foldergroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ID is the group's number, in a range that neither distributions nor systemd use.
const ID = 2_000_000_000

// The modes of files and directories that a storage proxy creates in folders, independent of its
// umask.
const (
	Dir  = 0o775
	File = 0o664
)

// Root gives an open directory to the group, and makes the kernel do the same with everything that
// is created in it, independent of the umask. Some file systems do not support groups or default
// access lists, and a proxy that is not root may not be able to change the group: there, only the
// modes are set.
func Root(dir *os.File) error {
	fd := int(dir.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	err := tolerate(unix.Fchown(fd, -1, ID))
	if err == nil {
		err = tolerate(unix.Fchmod(fd, Dir|unix.S_ISGID))
	}
	if err == nil {
		err = tolerate(unix.Fsetxattr(fd, "system.posix_acl_default", defaults(), 0))
	}
	if err != nil {
		return fmt.Errorf("open directory to the group of folders: %w", err)
	}
	return nil
}

// WithGroup returns a mode whose group has the permissions of its owner.
func WithGroup(mode uint32) uint32 { return mode | mode&0o700>>3 }

func tolerate(err error) error {
	for _, known := range []error{unix.EPERM, unix.ENOTSUP, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// defaults is an access list of acl(5): owner and group have all permissions, others can read.
func defaults() []byte {
	const (
		version = 2
		nobody  = 0xffffffff // no user or group is named
	)
	raw := binary.LittleEndian.AppendUint32(nil, version)
	for _, entry := range []struct{ tag, may uint16 }{{0x01, 7}, {0x04, 7}, {0x20, 5}} {
		raw = binary.LittleEndian.AppendUint16(raw, entry.tag)
		raw = binary.LittleEndian.AppendUint16(raw, entry.may)
		raw = binary.LittleEndian.AppendUint32(raw, nobody)
	}
	return raw
}
