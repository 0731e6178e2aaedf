package volume

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// copier copies a tree into another one, on whatever file system that is: files
// with their holes, links as links, owners, modes, times and attributes. What is
// complete from an earlier attempt is left alone: a file gets its time last.
// Sockets and devices have no bytes and are left out.
type copier struct {
	ctx   context.Context
	top   *os.File
	links map[inode]string // files with several names, by what they are at the source
}

type inode struct{ dev, ino uint64 }

// tree copies what is in a directory, and then what the directory itself is like.
func (c *copier) tree(from, to *os.File, path string, depth int) error {
	if depth > walkDepth {
		return invalid("path %q: is more than %d levels deep", path[:64]+"…", walkDepth)
	}
	names, err := readNames(from)
	if err != nil {
		return classify("read", path, err)
	}
	if err := to.Chmod(0o700); err != nil { // an earlier attempt may have come to its mode
		return classify("copy", path, err)
	}
	for _, name := range names {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.one(from, to, name, join(path, name), depth); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &st); err != nil {
		return classify("read", path, err)
	}
	if err := finish(from, to, &st); err != nil {
		return classify("copy", path, err)
	}
	return nil
}

func readNames(dir *os.File) ([]string, error) {
	d, err := openDir(dir, "", plain)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return names, err
}

func (c *copier) one(from, to *os.File, name, path string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(int(from.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return classify("read", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return c.dir(from, to, name, path, depth)
	case unix.S_IFREG:
		err = c.file(from, to, name, path, &st)
	case unix.S_IFLNK:
		err = link(from, to, name, &st)
	case unix.S_IFIFO:
		err = fifo(to, name, &st)
	}
	return classify("copy", path, err)
}

func (c *copier) dir(from, to *os.File, name, path string, depth int) error {
	source, err := openDir(from, name, plain)
	if err != nil {
		return classify("copy", path, err)
	}
	defer source.Close()
	target, err := mkdir(to, name, 0o700, plain)
	if err != nil {
		return classify("copy", path, err)
	}
	defer target.Close()
	return c.tree(source, target, path, depth+1)
}

func (c *copier) file(from, to *os.File, name, path string, st *unix.Stat_t) error {
	id := inode{st.Dev, st.Ino}
	if first, again := c.links[id]; again {
		err := unix.Linkat(int(c.top.Fd()), first, int(to.Fd()), name, 0)
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		return err
	}
	if st.Nlink > 1 {
		c.links[id] = path
	}
	var have unix.Stat_t
	if unix.Fstatat(int(to.Fd()), name, &have, unix.AT_SYMLINK_NOFOLLOW) == nil && have.Mode == st.Mode &&
		have.Size == st.Size && have.Mtim == st.Mtim && have.Uid == st.Uid && have.Gid == st.Gid {
		return nil
	}
	source, err := openRegular(from, name)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := openat2(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW, 0o600, plain)
	if err != nil {
		return err
	}
	err = c.bytes(source, target, st.Size)
	if err == nil {
		err = finish(source, target, st)
	}
	return errors.Join(err, target.Close())
}

// bytes copies what is not a hole, in pieces so that it can be interrupted.
func (c *copier) bytes(from, to *os.File, size int64) error {
	const piece = 64 << 20
	for at := int64(0); at < size; {
		data, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // holes to the end
		}
		if err != nil {
			return err
		}
		hole, err := from.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := from.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := to.Seek(data, io.SeekStart); err != nil {
			return err
		}
		at = min(hole, data+piece)
		if _, err := io.CopyN(to, from, at-data); err != nil {
			return err
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	return to.Truncate(size)
}

func link(from, to *os.File, name string, st *unix.Stat_t) error {
	text := make([]byte, maxPath)
	n, err := unix.Readlinkat(int(from.Fd()), name, text)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(text[:n]), int(to.Fd()), name); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return errors.Join(chown(to, name, st), times(to, name, st))
}

func fifo(to *os.File, name string, st *unix.Stat_t) error {
	err := unix.Mknodat(int(to.Fd()), name, unix.S_IFIFO|st.Mode&0o777, 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return errors.Join(chown(to, name, st), unix.Fchmodat(int(to.Fd()), name, st.Mode&0o7777, 0), times(to, name, st))
}

func times(dir *os.File, name string, st *unix.Stat_t) error {
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// chown leaves to itself all that a proxy copies which may not give things away.
func chown(dir *os.File, name string, st *unix.Stat_t) error {
	err := unix.Fchownat(int(dir.Fd()), name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}

// finish makes a file or directory like its source: the owner before the mode,
// because a new owner takes bits away, and the times last.
func finish(from, to *os.File, st *unix.Stat_t) error {
	if err := chown(to, "", st); err != nil {
		return err
	}
	if err := unix.Fchmod(int(to.Fd()), st.Mode&0o7777); err != nil {
		return err
	}
	if err := attributes(from, to); err != nil {
		return err
	}
	at := "/proc/self/fd/" + strconv.Itoa(int(to.Fd()))
	return unix.UtimesNanoAt(unix.AT_FDCWD, at, []unix.Timespec{st.Atim, st.Mtim}, 0)
}

const maxAttributes = 64 << 10 // bytes of names, and of one value: the kernel's limit

// attributes copies the extended attributes that users set, access lists among them.
func attributes(from, to *os.File) error {
	list := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(int(from.Fd()), list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
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
