// Package reflink copies trees on file systems whose files can share blocks: btrfs, and XFS with
// reflink. The copy needs no space for data until either side is written, and its duration depends
// only on the number of files. Plugins for products on such file systems import it for CloneTree.
package reflink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Done is the progress of a copy.
type Done struct {
	Files  int64 // entries that are not directories
	Bytes  int64 // sum of their lengths
	Shared int64 // bytes of shared blocks
}

// Tree copies the open directory from to a new directory name in the open directory to. It copies
// hard links, symbolic links, pipes, owners, modes, times and attributes, and skips sockets and
// devices. It does not follow symbolic links or enter other file systems. An error of report
// cancels the copy; the caller must remove an incomplete copy.
//
// A quota does not stop a copy: btrfs counts shared blocks for the destination's subvolume, but
// refuses only writes. report can check the quota.
func Tree(ctx context.Context, from, to *os.File, name string, report func(Done) error) error {
	c := &copier{ctx: ctx, report: report, links: map[inode]*os.File{}}
	defer c.close()
	return c.dir(from, to, name, 0)
}

// deepest limits the number of open descriptors, two per level.
const deepest = 256

// manyLinks limits the number of open copies of files with several names. Further ones are copied
// once per name, and still share their blocks.
const manyLinks = 512

type inode struct{ dev, ino uint64 }

type copier struct {
	ctx    context.Context
	report func(Done) error
	done   Done
	links  map[inode]*os.File // copies of files with several names
}

func (c *copier) close() {
	for _, f := range c.links {
		f.Close()
	}
}

// dir copies a directory, and its own attributes last.
func (c *copier) dir(from, parent *os.File, name string, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%q: more than %d levels deep: %w", name, deepest, unix.ENAMETOOLONG)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &st); err != nil {
		return err
	}
	if err := unix.Mkdirat(int(parent.Fd()), name, 0o700); err != nil {
		return fmt.Errorf("make %q: %w", name, err)
	}
	to, err := openAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	for {
		names, err := from.Readdirnames(256)
		for _, n := range names {
			if err := c.entry(from, to, n, &st, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return finish(from, to, &st)
		}
		if err != nil {
			return fmt.Errorf("list %q: %w", name, err)
		}
	}
}

func (c *copier) entry(from, to *os.File, name string, top *unix.Stat_t, depth int) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	err := unix.Fstatat(int(from.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil // removed in the meantime
	}
	if err != nil {
		return fmt.Errorf("stat %q: %w", name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if st.Dev != top.Dev {
			return nil // another file system, or a subvolume, which behaves like a mount
		}
		d, err := openAt(from, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		defer d.Close()
		return c.dir(d, to, name, depth+1)
	case unix.S_IFREG:
		err = c.file(from, to, name, &st)
	case unix.S_IFLNK:
		err = link(from, to, name, &st)
	case unix.S_IFIFO:
		err = unix.Mknodat(int(to.Fd()), name, unix.S_IFIFO|st.Mode&0o777, 0)
		err = errors.Join(err, own(to, name, &st), times(to, name, &st))
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy %q: %w", name, err)
	}
	c.done.Files++
	c.done.Bytes += st.Size
	return c.report(c.done)
}

func (c *copier) file(from, to *os.File, name string, st *unix.Stat_t) error {
	id := inode{uint64(st.Dev), st.Ino}
	if first := c.links[id]; first != nil {
		return unix.Linkat(unix.AT_FDCWD, self(first), int(to.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	}
	source, err := openAt(from, name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	// The open file is authoritative: the name may have been replaced.
	if err := unix.Fstat(int(source.Fd()), st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("is no longer a file: %w", unix.EINVAL)
	}
	target, err := openAt(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(target.Fd()), int(source.Fd()))
	if err == nil {
		c.done.Shared += st.Blocks * 512
		err = finish(source, target, st)
	}
	if err == nil && st.Nlink > 1 && len(c.links) < manyLinks {
		c.links[inode{uint64(st.Dev), st.Ino}] = target
		return nil
	}
	return errors.Join(err, target.Close())
}

func link(from, to *os.File, name string, st *unix.Stat_t) error {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(from.Fd()), name, text)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(text[:n]), int(to.Fd()), name); err != nil {
		return err
	}
	return errors.Join(own(to, name, st), times(to, name, st))
}

// finish copies the attributes of a file or directory: the owner before the mode, because changing
// the owner clears bits of the mode, and the times last.
func finish(from, to *os.File, st *unix.Stat_t) error {
	if err := own(to, "", st); err != nil {
		return err
	}
	mode := st.Mode & 0o7777
	if st.Mode&unix.S_IFMT == unix.S_IFREG { // containers could create a set-uid program for root
		mode &^= unix.S_ISUID | unix.S_ISGID
	}
	if err := unix.Fchmod(int(to.Fd()), mode); err != nil {
		return err
	}
	if err := attributes(from, to); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, self(to), []unix.Timespec{st.Atim, st.Mtim}, 0)
}

func own(dir *os.File, name string, st *unix.Stat_t) error {
	return unix.Fchownat(int(dir.Fd()), name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH)
}

func times(dir *os.File, name string, st *unix.Stat_t) error {
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

const maxAttributes = 64 << 10 // of names, and of one value: the kernel's limit

// attributes copies the user's extended attributes and access control lists.
func attributes(from, to *os.File) error {
	list := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(int(from.Fd()), list)
	if n == 0 || errors.Is(err, unix.ENOTSUP) {
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
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value[:n], 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openAt opens an entry of a directory without following links.
func openAt(dir *os.File, name string, flags int, mode uint32) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path.Base(name), err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// self returns a path of an open file that does not depend on its name.
func self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
