package volume

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// MoveFolder moves a folder from one scope to another, which must exist, and
// opens it there; the caller closes it. It is a rename where the file system
// does that, else a copy that takes the folder's place once it is complete: a
// product with a quota per directory renames nothing across two. A folder that
// has arrived is done; after an interruption the copy continues.
//
// No one may write to the folder meanwhile, which its manager sees to.
func (v *Volume) MoveFolder(ctx context.Context, scope, folder, to string) (*Folder, error) {
	from, err := FolderPath(scope, folder)
	if err != nil {
		return nil, err
	}
	path, err := FolderPath(to, folder)
	if err != nil {
		return nil, err
	}
	if from == path {
		return v.Folder(scope, folder)
	}
	target, err := v.openScope(path[:32])
	if err != nil {
		return nil, err
	}
	defer target.Close()
	if err := v.carry(ctx, target, from, path); err != nil {
		return nil, err
	}
	// What a copy leaves behind, now or before an interruption.
	if err := v.DeleteFolder(ctx, scope, folder, NewMeter()); err != nil {
		return nil, err
	}
	return v.Folder(to, folder)
}

// carry brings a folder to its place in the target scope, unless it is there.
func (v *Volume) carry(ctx context.Context, target *os.File, from, path string) error {
	to := path[33:]
	there, err := openDir(target, to, plain)
	if err == nil {
		return there.Close()
	}
	if !errors.Is(err, unix.ENOENT) {
		return classify("move folder", to, err)
	}
	source, err := v.openScope(from[:32])
	if err != nil {
		return err
	}
	defer source.Close()
	folder, err := openDir(source, from[33:], plain)
	if err != nil {
		return classify("move folder", from[33:], err)
	}
	defer folder.Close()
	err = settle(source, from[33:], target, to)
	if errors.Is(err, unix.EXDEV) {
		return v.bring(ctx, &Folder{dir: folder, scope: source, vol: v, Path: from}, target, path, NewMeter(), nil)
	}
	if err != nil {
		return classify("move folder", to, err)
	}
	prune(source, from[33:38])
	return nil
}

// settle renames a directory to a folder's place.
func settle(from *os.File, name string, target *os.File, to string) error {
	dir, last := split(to)
	prefix, err := prefixMode(target)
	if err != nil {
		return err
	}
	for range 16 { // deleting a neighbour may remove a prefix under our feet
		parent, err := mkdirAll(target, dir, prefix, plain)
		if err != nil {
			return err
		}
		err = rename(from, name, parent, last, false)
		if err == nil {
			err = parent.Sync()
		}
		err = errors.Join(err, parent.Close())
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return unix.ENOENT
}
