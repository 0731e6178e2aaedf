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

// Tree is the file system behind an array, as its clients have it mounted. Names
// are paths below the mount. Its errors are those of the operating system.
type Tree struct {
	path  string
	root  *os.Root
	top   *os.File
	disk  *meter
	mu    sync.Mutex // one change of the tree's shape at a time
	spare int        // names for what is being made

	pretended atomic.Pointer[Rates]
}

// emptySize is what btrfs counts for a subvolume without files; real products
// count nothing for an empty directory, so neither does a Tree.
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

// Path is where something is for this process.
func (t *Tree) Path(name string) string { return filepath.Join(t.path, name) }

// IsDir reports whether there is a directory of the name.
func (t *Tree) IsDir(name string) bool {
	st, err := t.root.Lstat(name)
	return err == nil && st.IsDir()
}

// Make makes a directory that can be limited.
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

// open opens a directory; what is a link within the mount is followed.
func (t *Tree) open(name string) (*os.File, error) {
	return t.root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// Limit bounds what a directory and all below it may hold; nil lifts the bound.
// A directory that was made by mkdir is replaced by one that can be limited,
// under the same name, with what is in it, its owner and its mode: its inode
// number is another one from then on, 256, as with every such directory, and
// a file descriptor of before leads to nowhere.
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

// limitable opens a directory after making it one that can be limited.
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
		err = qgroup.Sync(t.top) // what was cloned counts only now
	}
	if err != nil {
		return nil, err
	}
	return t.open(name)
}

// replace puts a copy of all that is in d into fresh, and then fresh in its place.
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

// Remove removes an empty directory, or with all also what is in it. One that is
// not there is ENOENT.
func (t *Tree) Remove(name string, all bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.root.Lstat(name); err != nil || !all {
		return errors.Join(err, t.root.Remove(name))
	}
	return t.root.RemoveAll(name)
}

// Rename gives a directory another name.
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
