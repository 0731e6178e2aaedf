package volume

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// MoveFolder moves a folder from one scope to another, which must exist, and opens it there;
// the caller closes it. It renames the folder if the file system can, and copies it otherwise:
// a product with a quota per directory cannot rename across two. If the folder is already
// there, it only opens it. A repeated call continues an interrupted copy.
//
// The manager makes sure that nobody writes to the folder meanwhile.
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
	// The original of a copy, made now or before an interruption.
	if err := v.DeleteFolder(ctx, scope, folder, NewMeter()); err != nil {
		return nil, err
	}
	return v.Folder(to, folder)
}

// carry moves or copies a folder to its place in the target scope, unless it is there.
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
	for range 16 { // the deletion of another folder may remove a prefix concurrently
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
