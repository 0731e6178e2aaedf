package volume

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// original is the first name of a file that has several.
type original struct {
	path string        // below top
	made chan struct{} // closed when it is copied
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
