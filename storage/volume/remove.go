package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// deletedDir, in a scope, contains folders that are being deleted. Moving a folder there makes
// it disappear at once, and makes its deletion resumable.
const deletedDir = ".deleted"

// Remove deletes the entry at a path; a directory with its contents if recursive. An absent
// entry is not an error. Links are removed, not followed.
func (f *Folder) Remove(ctx context.Context, path string, recursive bool, m *Meter) error {
	path, err := Clean(path)
	if err != nil {
		return err
	}
	if path == "" {
		return invalid("path: is the folder itself")
	}
	parent, name, err := f.parent(path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return classify("delete", path, err)
	}
	defer parent.Close()
	if recursive {
		expectEntries(ctx, parent, name, m)
		return classify("delete", path, (&remover{ctx: ctx, resolve: inside, meter: m}).tree(parent, name))
	}
	err = unix.Unlinkat(int(parent.Fd()), name, 0)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return classify("delete", path, err)
	}
	m.did(1, 0)
	return nil
}

// RemoveDirectory removes an empty directory.
func (f *Folder) RemoveDirectory(path string) error {
	path, err := Clean(path)
	if err != nil {
		return err
	}
	if path == "" {
		return invalid("path: is the folder itself")
	}
	parent, name, err := f.parent(path)
	if err != nil {
		return classify("remove directory", path, err)
	}
	defer parent.Close()
	return classify("remove directory", path, unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR))
}

// expectEntries counts the entries to remove. If that fails, the total grows with the
// progress.
func expectEntries(ctx context.Context, dir *os.File, name string, m *Meter) {
	c := counter{ctx: ctx}
	if c.count(dir, name) == nil {
		m.expect(c.files, 0)
	}
}

// DeleteFolder removes a folder and its tree, and the remains of an unfinished copy to its
// place. An absent folder is not an error. A repeated call continues an interrupted deletion.
func (v *Volume) DeleteFolder(ctx context.Context, scope, folder string, m *Meter) error {
	path, err := FolderPath(scope, folder)
	if err != nil {
		return err
	}
	s, err := v.openScope(path[:32])
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	name := folderName(path[33:])
	if err := dropArrival(ctx, s, name); err != nil {
		return classify("delete folder", folder, err)
	}
	bin, err := mkdir(s, deletedDir, 0o700, plain)
	if err != nil {
		return classify("delete folder", folder, err)
	}
	defer bin.Close()
	// First the remains of an interrupted deletion, then the folder itself.
	for range 2 {
		if err := v.empty(ctx, bin, path[:32], name, m); err != nil {
			return classify("delete folder", folder, err)
		}
		err := unix.Renameat(int(s.Fd()), path[33:], int(bin.Fd()), name)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return classify("delete folder", folder, err)
		}
		prune(s, path[33:38])
	}
	return classify("delete folder", folder, v.empty(ctx, bin, path[:32], name, m))
}

// empty removes one tree from the directory of deleted folders, with the product if it can.
func (v *Volume) empty(ctx context.Context, bin *os.File, scope, name string, m *Meter) error {
	if there(bin, name) && v.can(volumepb.Capability_DELETE) {
		err := v.call(ctx, func(c *plugin.Client) error {
			stream, err := c.DeleteTree(ctx, &volumepb.TreeRef{Volume: v.cfg.Name, Path: scope + "/" + deletedDir + "/" + name})
			if err != nil {
				return err
			}
			return follow(stream, m)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.log.Warn("the product did not remove the tree; the proxy removes it file by file", "error", err)
		}
	}
	expectEntries(ctx, bin, name, m)
	return (&remover{ctx: ctx, resolve: plain, meter: m}).tree(bin, name)
}

// prune removes the prefixes "ab/cd" of a deleted folder if they are empty.
func prune(scope *os.File, prefixes string) {
	for _, p := range []string{prefixes, prefixes[:2]} {
		if unix.Unlinkat(int(scope.Fd()), p, unix.AT_REMOVEDIR) != nil {
			return // not empty: in use
		}
	}
}

// remover removes a tree with a limited number of open descriptors: directories below the
// level deepest are first moved up to the tree's top.
type remover struct {
	ctx     context.Context
	top     *os.File
	resolve uint64
	deep    int // directories moved up
	seen    int
	meter   *Meter
}

const (
	deepest = 200
	passes  = 1000 // over a directory that another process keeps filling
)

// tree removes a tree, or a single file.
func (r *remover) tree(parent *os.File, name string) error {
	top, err := openDir(parent, name, r.resolve)
	if err == nil {
		defer top.Close()
		r.top = top
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return r.remove(parent, name, 0)
}

func (r *remover) remove(parent *os.File, name string, depth int) error {
	err := unix.Unlinkat(int(parent.Fd()), name, 0)
	if err == nil {
		return r.count()
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	if depth > deepest && r.top != nil {
		// The next pass over the top removes it there.
		r.deep++
		up := ".deep-" + strconv.Itoa(r.deep) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		return unix.Renameat(int(parent.Fd()), name, int(r.top.Fd()), up)
	}
	for range passes {
		if err := r.clear(parent, name, depth); err != nil {
			return err
		}
		err = unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return r.count()
		}
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return fmt.Errorf("files are still being created in it: %w", errdefs.ErrFailedPrecondition)
}

// clear removes the current contents of a directory.
func (r *remover) clear(parent *os.File, name string, depth int) error {
	d, err := openDir(parent, name, r.resolve)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, n := range names {
			if err := r.remove(d, n, depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *remover) count() error {
	r.meter.did(1, 0)
	if r.seen++; r.seen%100 == 0 {
		return r.ctx.Err()
	}
	return nil
}
