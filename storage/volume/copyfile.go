package volume

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
)

// original is the first name of a file that has several.
type original struct {
	path string        // below top
	made chan struct{} // closed when the file has been copied
}

func (c *copier) file(from, to *os.File, name, as, path string, st *unix.Stat_t) error {
	if st.Nlink > 1 {
		first, mine := c.first(st, path)
		if mine {
			defer close(first.made)
		} else if done, err := c.again(first, to, as); done || err != nil {
			return err
		}
	}
	source, err := openRegular(from, name, unix.O_RDONLY)
	if err != nil {
		return skipped(path, err)
	}
	defer source.Close()
	// The opened file may differ from the one that was listed.
	if err := unix.Fstat(int(source.Fd()), st); err != nil {
		return err
	}
	if complete(to, as, st) {
		c.meter.did(1, st.Size)
		return nil
	}
	target, err := openat2(to, as, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW, 0o600, plain)
	if err != nil {
		return err
	}
	err = c.bytes(source, target, st.Size)
	if err == nil {
		err = finish(source, target, st)
	}
	return errors.Join(err, target.Close())
}

// complete reports whether an earlier attempt has copied a file completely.
func complete(to *os.File, as string, st *unix.Stat_t) bool {
	var have unix.Stat_t
	if unix.Fstatat(int(to.Fd()), as, &have, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	owned := have.Uid == st.Uid && have.Gid == st.Gid || os.Geteuid() != 0
	return have.Mode == modeOf(st) && have.Size == st.Size && have.Mtim == st.Mtim && owned
}

// first returns the first name of a file, and whether the caller must create it.
func (c *copier) first(st *unix.Stat_t, path string) (*original, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := inode{st.Dev, st.Ino}
	if o, there := c.links[id]; there {
		return o, false
	}
	o := &original{path: path, made: make(chan struct{})}
	c.links[id] = o
	return o, true
}

// again adds a name to a copied file, unless the copy of the first name failed.
func (c *copier) again(first *original, to *os.File, as string) (done bool, err error) {
	select {
	case <-first.made:
	case <-c.ctx.Done():
		return false, c.ctx.Err()
	}
	// An earlier attempt may have left a separate copy here.
	if err := unix.Unlinkat(int(to.Fd()), as, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return false, err
	}
	if err := unix.Linkat(int(c.top.Fd()), first.path, int(to.Fd()), as, 0); err != nil {
		return false, vanished(err)
	}
	c.meter.did(1, 0)
	return true, nil
}

// piece is the number of bytes between two checks for cancellation.
const piece = 64 << 20

// bytes copies the contents of a file: it shares blocks if possible, and copies all but holes
// otherwise.
func (c *copier) bytes(from, to *os.File, size int64) error {
	counted := int64(0)
	defer func() { c.meter.did(1, size-counted) }()
	if c.shares(from, to, size) {
		return to.Truncate(size) // the source may have grown since
	}
	for at := int64(0); at < size; {
		data, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // only a hole until the end
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
		at = min(hole, data+piece, size)
		n, err := io.CopyN(to, from, at-data)
		counted += n
		c.meter.did(0, n)
		if errors.Is(err, io.EOF) {
			break // the source has shrunk
		}
		if err != nil {
			return err
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	return to.Truncate(size)
}

// shares clones the blocks of the source to the target, and reports whether that worked.
func (c *copier) shares(from, to *os.File, size int64) bool {
	if size == 0 || c.apart.Load() {
		return false
	}
	err := unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
	for _, never := range []error{unix.EOPNOTSUPP, unix.EXDEV, unix.ENOTTY, unix.ENOSYS} {
		if errors.Is(err, never) {
			c.apart.Store(true)
		}
	}
	return err == nil
}

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
