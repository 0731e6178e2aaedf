package view

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// tree is the tree of folders of one client. Every call checks the token's current permissions.
type tree struct {
	views       *Views
	credentials Credentials
	protocol    string
}

// place is the target of a name in the view.
type place struct {
	who    *account
	node   *node  // a directory that contains folders, or nil
	folder *open  // the folder; nil for a directory of the view
	path   string // path in the folder; "" is the folder itself
}

// find resolves a name up to the folder. The volume resolves the rest.
func (t *tree) find(ctx context.Context, name string) (place, error) {
	a, err := t.views.accounts.get(ctx, t.credentials)
	if err != nil {
		return place{}, err
	}
	at := place{who: a, node: a.root}
	parts := slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" })
	for i, part := range parts {
		next := at.node.below[part]
		if next == nil {
			return place{}, fmt.Errorf("%q: %w", name, errdefs.ErrNotFound)
		}
		if next.folder == nil {
			at.node = next
			continue
		}
		at.node, at.folder = nil, next.folder
		at.path, err = volume.Clean(strings.Join(parts[i+1:], "/"))
		return at, err
	}
	return at, nil
}

// inside resolves a name in a folder that the client can read, or write to.
func (t *tree) inside(ctx context.Context, name string, write bool) (place, error) {
	at, err := t.find(ctx, name)
	if err != nil {
		return at, err
	}
	if at.folder == nil {
		return at, fmt.Errorf("%q: is not a folder; create and rename folders on the page of Berth or with its CLI: %w", name, errdefs.ErrPermissionDenied)
	}
	return at, at.folder.check(write)
}

func (o *open) check(write bool) error {
	if !o.read {
		return fmt.Errorf("folder %q: this token does not give access to read it: %w", o.path, errdefs.ErrPermissionDenied)
	}
	if write && !o.write {
		return fmt.Errorf("folder %q: this token does not give access to change it: %w", o.path, errdefs.ErrPermissionDenied)
	}
	return nil
}

// still returns an error if the client has lost the permission for an operation in progress.
func (t *tree) still(ctx context.Context, o *open, write bool) error {
	a, err := t.views.accounts.get(ctx, t.credentials)
	if err != nil {
		return err
	}
	now := a.byID[o.ref.Folder]
	if now == nil {
		return fmt.Errorf("folder %q: no longer exists: %w", o.path, errdefs.ErrPermissionDenied)
	}
	return now.check(write)
}

// in opens a folder and runs f with it.
func (t *tree) in(o *open, f func(*volume.Folder) error) error {
	v, err := t.views.cfg.Volumes.Get(o.ref.Volume)
	if err != nil {
		return err
	}
	folder, err := v.Folder(o.ref.Scope, o.ref.Folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	return f(folder)
}

// stat describes the target of a name.
func (t *tree) stat(ctx context.Context, name string) (info, error) {
	at, err := t.find(ctx, name)
	if err != nil {
		return info{}, err
	}
	return t.statAt(at)
}

func (t *tree) statAt(at place) (out info, err error) {
	if at.folder == nil {
		return t.above(at.node.name), nil
	}
	if at.path == "" {
		out = t.above(path.Base(at.folder.path))
		if !at.folder.write {
			out.mode &^= 0o222
		}
	}
	if at.folder.read {
		err = t.in(at.folder, func(f *volume.Folder) error {
			e, err := f.Stat(at.path)
			if err == nil && at.path != "" && !shown(e) {
				err = fmt.Errorf("%q: is neither a file nor a directory: %w", at.path, errdefs.ErrNotFound)
			}
			if at.path == "" {
				out.modified = e.Modified
			} else {
				out = at.folder.infoOf(e)
			}
			return err
		})
	} else if at.path != "" {
		err = at.folder.check(false)
	}
	return out, err
}

// above describes a directory that exists only in the view.
func (t *tree) above(name string) info {
	if name == "" {
		name = "/"
	}
	return info{name: name, dir: true, mode: 0o755, modified: t.views.began}
}

// page lists a directory in pages, ordered by name. The cursor of the first page is "", and so
// is the cursor after the last page.
func (t *tree) page(ctx context.Context, name, cursor string) (page []info, next string, err error) {
	at, err := t.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if at.folder == nil {
		for _, name := range slices.Sorted(maps.Keys(at.node.below)) {
			page = append(page, t.above(name))
		}
		return page, "", nil
	}
	if err := at.folder.check(false); err != nil {
		return nil, "", err
	}
	err = t.in(at.folder, func(folder *volume.Folder) error {
		var entries []volume.Entry
		entries, next, err = folder.List(at.path, volume.MaxPage, cursor)
		for _, e := range entries {
			if shown(e) {
				page = append(page, at.folder.infoOf(e))
			}
		}
		return err
	})
	return page, next, err
}

// list lists a directory.
func (t *tree) list(ctx context.Context, name string) (all []fs.FileInfo, err error) {
	for cursor := ""; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page, next, err := t.page(ctx, name, cursor)
		for _, i := range page {
			all = append(all, i)
		}
		if cursor = next; err != nil || cursor == "" {
			return all, err
		}
	}
}

// open opens a regular file.
func (t *tree) open(ctx context.Context, name string) (file *os.File, at place, err error) {
	if at, err = t.inside(ctx, name, false); err != nil {
		return nil, at, err
	}
	err = t.in(at.folder, func(f *volume.Folder) error {
		file, err = f.Open(at.path)
		return err
	})
	return file, at, err
}

// mkdir creates a directory in an existing directory.
func (t *tree) mkdir(ctx context.Context, name string) error {
	at, err := t.inside(ctx, name, true)
	if err != nil {
		return err
	}
	return t.in(at.folder, func(f *volume.Folder) error {
		switch _, err := f.Stat(at.path); {
		case err == nil:
			return fmt.Errorf("make directory %q: exists: %w", at.path, errdefs.ErrAlreadyExists)
		case !errdefs.IsNotFound(err):
			return err
		}
		if err := t.parent(at); err != nil {
			return err
		}
		_, err := f.MakeDirectory(at.path)
		if err == nil {
			t.did(at, storagepb.FileOperation_MADE, at.path, 0)
		}
		return err
	})
}

// parent returns an error if the directory of a name does not exist.
func (t *tree) parent(at place) error {
	up := at
	if up.path = path.Dir(at.path); up.path == "." {
		return nil // the folder itself
	}
	i, err := t.statAt(up)
	if err == nil && !i.dir {
		err = fmt.Errorf("%q: is not a directory: %w", up.path, errdefs.ErrNotFound)
	}
	return err
}

// remove removes a file or a directory, with its contents if recursive.
func (t *tree) remove(ctx context.Context, name string, recursive bool) error {
	at, err := t.removable(ctx, name)
	if err != nil {
		return err
	}
	return t.removed(at, func(f *volume.Folder) error { return f.Remove(ctx, at.path, recursive, volume.NewMeter()) })
}

// removed runs the removal of a place and records it.
func (t *tree) removed(at place, remove func(*volume.Folder) error) error {
	err := t.in(at.folder, remove)
	if err == nil {
		t.did(at, storagepb.FileOperation_REMOVED, at.path, 0)
	}
	return err
}

func (t *tree) removable(ctx context.Context, name string) (place, error) {
	at, err := t.inside(ctx, name, true)
	if err == nil && at.path == "" {
		err = fmt.Errorf("folder %q: delete folders on the page of Berth or with its CLI: %w", at.folder.path, errdefs.ErrPermissionDenied)
	}
	return at, err
}

// movable returns the errors that rename would return.
func (t *tree) movable(ctx context.Context, from, to string) (a, b place, err error) {
	if a, err = t.inside(ctx, from, true); err != nil {
		return a, b, err
	}
	if b, err = t.inside(ctx, to, true); err != nil {
		return a, b, err
	}
	if a.path == "" || b.path == "" {
		return a, b, fmt.Errorf("rename folders on the page of Berth or with its CLI: %w", errdefs.ErrPermissionDenied)
	}
	if a.folder.ref.Volume != b.folder.ref.Volume {
		return a, b, fmt.Errorf("%q and %q are on different volumes, copy instead: %w", from, to, errdefs.ErrPermissionDenied)
	}
	_, err = t.statAt(a)
	return a, b, err
}

// rename moves a file or directory, also into another folder.
func (t *tree) rename(ctx context.Context, from, to string, overwrite bool) error {
	a, b, err := t.movable(ctx, from, to)
	if err != nil {
		return err
	}
	if err := t.parent(b); err != nil {
		return err
	}
	err = t.in(a.folder, func(source *volume.Folder) error {
		return t.in(b.folder, func(target *volume.Folder) error {
			var failed error
			run := (&volume.Transfer{
				From: source, To: target, Pairs: []volume.Pair{{From: a.path, To: b.path}}, Move: true, Overwrite: overwrite,
				Meter: volume.NewMeter(), OnResult: func(_ int, _ volume.Entry, err error) { failed = err },
			}).Run(ctx)
			if run != nil {
				return run
			}
			return failed
		})
	})
	if err == nil {
		t.moved(a, b)
	}
	return err
}

// moved records a move, in both folders if they differ.
func (t *tree) moved(a, b place) {
	if a.folder.ref.Folder == b.folder.ref.Folder {
		t.did(a, storagepb.FileOperation_MOVED, a.path+" → "+b.path, 0)
		return
	}
	t.did(a, storagepb.FileOperation_MOVED, a.path+" → "+b.folder.path+"/"+b.path, 0)
	t.did(b, storagepb.FileOperation_MOVED, a.folder.path+"/"+a.path+" → "+b.path, 0)
}

// rmdir removes an empty directory.
func (t *tree) rmdir(ctx context.Context, name string) error {
	at, err := t.removable(ctx, name)
	if err != nil {
		return err
	}
	return t.removed(at, func(f *volume.Folder) error { return f.RemoveDirectory(at.path) })
}

// stage begins a file in an existing directory.
func (t *tree) stage(ctx context.Context, name string, size int64) (*transfer.StagedFile, place, error) {
	at, err := t.file(ctx, name, true)
	if err != nil {
		return nil, at, err
	}
	if err := t.parent(at); err != nil {
		return nil, at, err
	}
	d, err := t.views.cfg.Transfers.Stage(ctx, at.transfer(), size)
	return d, at, err
}

// edit opens a file to change it in place.
func (t *tree) edit(ctx context.Context, name string) (*transfer.StagedFile, place, error) {
	at, err := t.file(ctx, name, true)
	if err != nil {
		return nil, at, err
	}
	d, err := t.views.cfg.Transfers.Edit(at.transfer())
	return d, at, err
}

// file resolves a name that is not a folder itself.
func (t *tree) file(ctx context.Context, name string, write bool) (place, error) {
	at, err := t.inside(ctx, name, write)
	if err == nil && at.path == "" {
		err = fmt.Errorf("folder %q: is a directory: %w", at.folder.path, errdefs.ErrFailedPrecondition)
	}
	return at, err
}

func (at place) transfer() transfer.Place {
	ref := at.folder.ref
	return transfer.Place{User: at.who.user, Volume: ref.Volume, Scope: ref.Scope, Folder: ref.Folder, Path: at.path}
}

// set sets attributes of a file or directory.
func (t *tree) set(ctx context.Context, name string, a volume.Attributes) error {
	at, err := t.inside(ctx, name, true)
	if err != nil {
		return err
	}
	err = t.in(at.folder, func(f *volume.Folder) error { return f.SetAttributes(at.path, a) })
	if err == nil {
		t.did(at, storagepb.FileOperation_SET, at.path, 0)
	}
	return err
}
