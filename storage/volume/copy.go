package volume

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// copier copies trees into the proxy's own directories, on any file system: files with their
// holes, links as links, owners, modes, times and attributes. It shares blocks if the file
// system can. It skips files that an earlier attempt completed, which it recognizes by their
// time, since that is set last. It leaves out sockets and devices, which have no contents.
type copier struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	top    *os.File // contains all targets
	meter  *Meter
	slots  chan struct{}     // goroutines in addition to the caller's
	apart  atomic.Bool       // blocks cannot be shared
	left   func(path string) // called for directories that are too deep; nil: those are an error

	mu    sync.Mutex
	links map[inode]*original // files with several names, by source inode
}

type inode struct{ dev, ino uint64 }

// abreast is the number of files that one call copies concurrently. Small files wait for the
// disk or for a file server more than for a processor.
const abreast = 8

func newCopier(ctx context.Context, top *os.File, m *Meter) *copier {
	c := &copier{top: top, meter: m, slots: make(chan struct{}, abreast-1), links: make(map[inode]*original)}
	c.restart(ctx)
	return c
}

// restart makes the copier usable after an error.
func (c *copier) restart(ctx context.Context) {
	if c.cancel != nil {
		c.cancel(nil)
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
}

// folder copies the contents and the attributes of a directory.
func (c *copier) folder(from *os.File) error {
	defer c.cancel(nil)
	return c.tree(from, c.top, "", 0)
}

// copy copies an entry to a name below top, and waits until it is done. depth is the number of
// names in the target's path.
func (c *copier) copy(from *os.File, name, to string, depth int) error {
	if err := c.discard(from, c.top, name, to); err != nil {
		return classify("copy", name, err)
	}
	var wg sync.WaitGroup
	err := c.one(from, c.top, name, to, to, depth-1, &wg)
	wg.Wait()
	return c.failed(err)
}

// beside runs f in a goroutine if one is free, and directly otherwise. The first error stops
// all.
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

// failed stores the first error of all goroutines, and returns it.
func (c *copier) failed(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return err
}

// tree copies the contents of a directory, and then its attributes.
func (c *copier) tree(from, to *os.File, path string, depth int) error {
	if err := to.Chmod(0o700); err != nil { // an earlier attempt may have set the final mode
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

// prune removes copies from an earlier attempt whose originals no longer exist.
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

// discard removes a copy whose original was deleted or replaced by another kind of entry.
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
		if len(names) > 0 && depth >= walkDepth {
			return c.deep(path)
		}
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

// deep leaves out the contents of a directory.
func (c *copier) deep(path string) error {
	if c.left == nil {
		return invalid("path %.80q: its contents are more than %d levels deep", path, walkDepth)
	}
	c.left(path)
	return nil
}

// one copies an entry; path is its target below top. The copy may still be running until the
// group is done.
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

// Attributes are the attributes that users can set of a file or directory; nil means no
// change.
type Attributes struct {
	Mode     *uint32 // permission bits only
	Modified *time.Time
}

// permissions are the bits of a mode that users can set.
const permissions = 0o777

// Set sets the attributes of an open file.
func (a Attributes) Set(f *os.File) error {
	var errs error
	if a.Mode != nil {
		errs = a.chmod(f)
	}
	if a.Modified != nil {
		at := unix.NsecToTimeval(a.Modified.UnixNano())
		errs = errors.Join(errs, unix.Futimes(int(f.Fd()), []unix.Timeval{at, at}))
	}
	return classify("set attributes", "", errs)
}

// chmod sets the permissions. It clears the set-uid and set-gid bits of a file, as the kernel
// does when a user other than root writes to it; a directory keeps the bit that passes its
// group on.
func (a Attributes) chmod(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	mode := *a.Mode & permissions
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= st.Mode & (unix.S_ISGID | unix.S_ISVTX)
	}
	return unix.Fchmod(int(f.Fd()), mode)
}

// Disarm clears the set-uid and set-gid bits and the capabilities of a regular file before it
// is changed, as the kernel does for users other than root.
func Disarm(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return classify("disarm", "", err)
	}
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		if err := unix.Fchmod(int(f.Fd()), st.Mode&permissions); err != nil {
			return classify("disarm", "", err)
		}
	}
	err := unix.Fremovexattr(int(f.Fd()), "security.capability")
	for _, absent := range []error{unix.ENODATA, unix.ENOTSUP, unix.EPERM, unix.ENOSYS} {
		if errors.Is(err, absent) {
			return nil
		}
	}
	return classify("disarm", "", err)
}

// SetAttributes sets the attributes of a file or directory. Other entries, links included, are
// an error. The folder itself keeps its mode.
func (f *Folder) SetAttributes(path string, a Attributes) error {
	path, err := Clean(path)
	if err != nil {
		return err
	}
	file, err := openRegular(f.dir, path, unix.O_RDONLY)
	if errors.Is(err, unix.EISDIR) {
		file, err = openDir(f.dir, path, inside)
	}
	if err != nil {
		return classify("set attributes", path, err)
	}
	defer file.Close()
	if path == "" {
		a.Mode = nil
	}
	return a.Set(file)
}
