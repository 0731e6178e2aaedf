package volume

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// copier copies trees into our own directories, on whatever file system those
// are: files with their holes, links as links, owners, modes, times and
// attributes; blocks are shared where the file system does that. What is complete
// from an earlier attempt is left alone: a file gets its time last. Sockets and
// devices have no bytes and are left out.
type copier struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	top    *os.File // holds all targets
	meter  *Meter
	slots  chan struct{} // goroutines beside the caller's
	apart  atomic.Bool   // blocks cannot be shared

	mu    sync.Mutex
	links map[inode]*original // files with several names, by what they are at the source
}

type inode struct{ dev, ino uint64 }

// original is the first name of a file that has several.
type original struct {
	path string        // below top
	made chan struct{} // closed when it is there
}

// abreast is how many files one call copies at a time. Small files wait for the
// disk, and a network file system for its server, more than for a processor.
const abreast = 8

func newCopier(ctx context.Context, top *os.File, m *Meter) *copier {
	c := &copier{top: top, meter: m, slots: make(chan struct{}, abreast-1), links: make(map[inode]*original)}
	c.restart(ctx)
	return c
}

// restart makes it usable after an error.
func (c *copier) restart(ctx context.Context) {
	if c.cancel != nil {
		c.cancel(nil)
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
}

// folder copies what is in a directory, and what that is like.
func (c *copier) folder(from *os.File) error {
	defer c.cancel(nil)
	return c.tree(from, c.top, "", 0)
}

// copy copies what is at a name to a name below top, and waits until it is done.
func (c *copier) copy(from *os.File, name, to string) error {
	if err := c.discard(from, c.top, name, to); err != nil {
		return classify("copy", name, err)
	}
	var wg sync.WaitGroup
	err := c.one(from, c.top, name, to, to, 0, &wg)
	wg.Wait()
	return c.failed(err)
}

// beside runs f in a goroutine where one is free, else at once. The first error
// ends all.
func (c *copier) beside(wg *sync.WaitGroup, f func() error) error {
	select {
	case c.slots <- struct{}{}:
	default:
		return f()
	}
	wg.Go(func() {
		defer func() { <-c.slots }()
		if err := f(); err != nil {
			c.cancel(err)
		}
	})
	return nil
}

// failed is the first error of all goroutines, if there is one.
func (c *copier) failed(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return err
}

// tree copies what is in a directory, and then what the directory itself is like.
func (c *copier) tree(from, to *os.File, path string, depth int) error {
	if depth > walkDepth {
		return invalid("path %q: is more than %d levels deep", path[:64]+"…", walkDepth)
	}
	if err := to.Chmod(0o700); err != nil { // an earlier attempt may have come to its mode
		return classify("copy", path, err)
	}
	if err := c.prune(from, to); err != nil {
		return classify("copy", path, err)
	}
	var wg sync.WaitGroup
	err := c.entries(from, to, path, depth, &wg)
	wg.Wait()
	if err := c.failed(err); err != nil {
		return err
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

// prune takes away what an earlier attempt copied and what is not there any more.
func (c *copier) prune(from, to *os.File) error {
	d, err := openDir(to, "", plain)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if err := c.discard(from, to, name, name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// discard removes a copy that nothing can be made of: its original has gone, or
// is something else by now.
func (c *copier) discard(from, to *os.File, name, as string) error {
	var was, is unix.Stat_t
	if err := unix.Fstatat(int(to.Fd()), as, &was, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return vanished(err)
	}
	err := unix.Fstatat(int(from.Fd()), name, &is, unix.AT_SYMLINK_NOFOLLOW)
	kind := was.Mode & unix.S_IFMT
	if err == nil && kind == is.Mode&unix.S_IFMT && (kind == unix.S_IFREG || kind == unix.S_IFDIR) {
		return nil
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return (&remover{ctx: c.ctx, resolve: plain, meter: NewMeter()}).tree(to, as)
}

func (c *copier) entries(from, to *os.File, path string, depth int, wg *sync.WaitGroup) error {
	d, err := openDir(from, "", plain)
	if err != nil {
		return classify("read", path, err)
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			if err := c.one(from, to, name, name, join(path, name), depth, wg); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return classify("read", path, err)
		}
	}
}

// one copies what is at a name; path is where it goes, below top. It may still be
// under way until the group is done.
func (c *copier) one(from, to *os.File, name, as, path string, depth int, wg *sync.WaitGroup) error {
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
		return c.beside(wg, func() error { return c.dir(from, to, name, as, path, depth) })
	case unix.S_IFREG:
		return c.beside(wg, func() error { return classify("copy", path, c.file(from, to, name, as, path, &st)) })
	case unix.S_IFLNK:
		err = link(from, to, name, as, &st)
	case unix.S_IFIFO:
		err = fifo(to, as, &st)
	}
	if err == nil {
		c.meter.did(1, 0)
	}
	return classify("copy", path, vanished(err))
}

func (c *copier) dir(from, to *os.File, name, as, path string, depth int) error {
	source, err := openDir(from, name, inside|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return classify("copy", path, vanished(err))
	}
	defer source.Close()
	target, err := mkdir(to, as, 0o700, plain)
	if err != nil {
		return classify("copy", path, err)
	}
	defer target.Close()
	if err := c.tree(source, target, path, depth+1); err != nil {
		return err
	}
	c.meter.did(1, 0)
	return nil
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
	source, err := openRegular(from, name)
	if err != nil {
		return skipped(path, err)
	}
	defer source.Close()
	// What was opened may be another file than what was seen.
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

// complete tells whether an earlier attempt came to a file's end.
func complete(to *os.File, as string, st *unix.Stat_t) bool {
	var have unix.Stat_t
	if unix.Fstatat(int(to.Fd()), as, &have, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	owned := have.Uid == st.Uid && have.Gid == st.Gid || os.Geteuid() != 0
	return have.Mode == st.Mode && have.Size == st.Size && have.Mtim == st.Mtim && owned
}

// first returns the first name of a file, and whether it is the caller's to make.
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

// again gives a file one name more, unless the first one came to nothing.
func (c *copier) again(first *original, to *os.File, as string) (done bool, err error) {
	select {
	case <-first.made:
	case <-c.ctx.Done():
		return false, c.ctx.Err()
	}
	// What an earlier attempt has left here may be a copy of its own.
	if err := unix.Unlinkat(int(to.Fd()), as, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return false, err
	}
	if err := unix.Linkat(int(c.top.Fd()), first.path, int(to.Fd()), as, 0); err != nil {
		return false, vanished(err)
	}
	c.meter.did(1, 0)
	return true, nil
}

// piece is how much is copied between two looks at whether to go on.
const piece = 64 << 20

// bytes makes a file hold what another does, by sharing its blocks or else by
// copying what is not a hole.
func (c *copier) bytes(from, to *os.File, size int64) error {
	counted := int64(0)
	defer func() { c.meter.did(1, size-counted) }()
	if c.shares(from, to, size) {
		return to.Truncate(size) // it may have grown since
	}
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
		at = min(hole, data+piece, size)
		n, err := io.CopyN(to, from, at-data)
		counted += n
		c.meter.did(0, n)
		if errors.Is(err, io.EOF) {
			break // it has shrunk
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

// shares lets the target have the blocks of the source, where that can be done.
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
