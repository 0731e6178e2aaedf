package simulator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
	"github.com/berthhq/berth/plugins/volume/reflink"
)

// Tree is the file system of a simulator, as its clients have mounted it. Names are paths below the
// mount. Its errors are those of the operating system.
type Tree struct {
	path  string
	root  *os.Root
	top   *os.File
	disk  *meter
	mu    sync.Mutex // serializes changes of the tree's structure
	spare int        // number of the next temporary name

	pretended atomic.Pointer[Rates]
}

// emptySize is the usage of an empty subvolume in btrfs. Real products count nothing for an empty
// directory, so Tree subtracts it.
const emptySize = 16 << 10

func openTree(ctx context.Context, mount string, work *sync.WaitGroup) (*Tree, error) {
	root, err := os.OpenRoot(mount)
	if err != nil {
		return nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	t := &Tree{path: mount, root: root, top: top}
	if err := t.prepare(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.disk = newMeter(mount)
	work.Go(func() { t.disk.run(ctx) })
	return t, nil
}

func (t *Tree) prepare() error {
	switch yes, err := qgroup.IsBtrfs(t.top); {
	case err != nil:
		return err
	case !yes:
		return fmt.Errorf("%s is not on btrfs", t.path)
	}
	s, err := qgroup.ReadStatus(t.top)
	if err == nil && s.Mode == qgroup.Off {
		err = qgroup.Enable(t.top, qgroup.Full)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return qgroup.WaitRescan(ctx, t.top)
}

func (t *Tree) close() error { return errors.Join(t.top.Close(), t.root.Close()) }

// Path returns the path of a name for this process.
func (t *Tree) Path(name string) string { return filepath.Join(t.path, name) }

// IsDir reports whether a name is a directory.
func (t *Tree) IsDir(name string) bool {
	st, err := t.root.Lstat(name)
	return err == nil && st.IsDir()
}

// Make creates a directory that can have a limit.
func (t *Tree) Make(name string, mode os.FileMode) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.make(name, mode)
}

func (t *Tree) make(name string, mode os.FileMode) error {
	parent, err := t.open(path.Dir(name))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := qgroup.Create(parent, path.Base(name), nil); err != nil {
		return err
	}
	return t.root.Chmod(name, mode)
}

// open opens a directory and follows links within the mount.
func (t *Tree) open(name string) (*os.File, error) {
	return t.root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// Limit limits the usage of a directory and everything below it; nil removes the limit. A directory
// that was created by mkdir is replaced by one that can have a limit, with the same name, contents,
// owner and mode. Its inode number is then 256, as for every such directory, and existing file
// descriptors refer to the removed directory.
func (t *Tree) Limit(name string, bytes *int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, err := t.limitable(name)
	if err != nil {
		return fmt.Errorf("limit %s: %w", name, err)
	}
	defer d.Close()
	id, err := qgroup.Subvolume(d)
	if err != nil {
		return err
	}
	if bytes != nil {
		n := *bytes + emptySize
		bytes = &n
	}
	return qgroup.SetLimit(t.top, id, bytes)
}

// limitable opens a directory after making it one that can have a limit.
func (t *Tree) limitable(name string) (*os.File, error) {
	d, err := t.open(name)
	if err != nil {
		return nil, err
	}
	if yes, err := qgroup.IsSubvolume(d); yes || err != nil {
		return d, err
	}
	defer d.Close()
	st, err := d.Stat()
	if err != nil {
		return nil, err
	}
	t.spare++
	fresh := path.Join(path.Dir(name), fmt.Sprintf(".array-%d", t.spare))
	if err := t.make(fresh, st.Mode().Perm()); err != nil {
		return nil, err
	}
	err = t.replace(name, fresh, d)
	if rerr := t.root.RemoveAll(fresh); err == nil {
		err = rerr
	}
	if err == nil {
		err = qgroup.Sync(t.top) // cloned data is accounted only after a sync
	}
	if err != nil {
		return nil, err
	}
	return t.open(name)
}

// replace clones the contents of d to fresh and then replaces name by fresh.
func (t *Tree) replace(name, fresh string, d *os.File) error {
	to, err := t.open(fresh)
	if err != nil {
		return err
	}
	defer to.Close()
	const inside = ".copy"
	if err := reflink.Tree(context.Background(), d, to, inside, func(reflink.Done) error { return nil }); err != nil {
		return err
	}
	copied, err := t.open(path.Join(fresh, inside))
	if err != nil {
		return err
	}
	defer copied.Close()
	entries, err := copied.Readdirnames(-1)
	for _, e := range entries {
		err = errors.Join(err, unix.Renameat(int(copied.Fd()), e, int(to.Fd()), e))
	}
	var st unix.Stat_t
	err = errors.Join(err, unix.Unlinkat(int(to.Fd()), inside, unix.AT_REMOVEDIR), unix.Fstat(int(d.Fd()), &st))
	if err != nil {
		return err
	}
	if err := errors.Join(to.Chown(int(st.Uid), int(st.Gid)), to.Chmod(fs.FileMode(st.Mode&0o777))); err != nil {
		return err
	}
	parent, err := t.open(path.Dir(name))
	if err != nil {
		return err
	}
	defer parent.Close()
	fd := int(parent.Fd())
	return unix.Renameat2(fd, path.Base(fresh), fd, path.Base(name), unix.RENAME_EXCHANGE)
}

// Remove removes an empty directory, or with all also its contents. It returns ENOENT if it does
// not exist.
func (t *Tree) Remove(name string, all bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.root.Lstat(name); err != nil || !all {
		return errors.Join(err, t.root.Remove(name))
	}
	return t.root.RemoveAll(name)
}

// Rename renames a directory.
func (t *Tree) Rename(from, to string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.root.Rename(from, to)
}

// Clone copies a tree; the copy shares the blocks.
func (t *Tree) Clone(ctx context.Context, from, to string) error {
	source, err := t.open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	parent, err := t.open(path.Dir(to))
	if err != nil {
		return err
	}
	defer parent.Close()
	return reflink.Tree(ctx, source, parent, path.Base(to), func(reflink.Done) error { return nil })
}
