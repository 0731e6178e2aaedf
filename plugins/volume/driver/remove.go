package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a tree below a scope entry by entry. It removes symbolic links without
// following them. A missing tree is not an error.
func (m *Mount) RemoveTree(ctx context.Context, tree string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	parent, err := openAt(root, path.Dir(tree), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return Error("remove tree", err)
	}
	defer parent.Close()
	return Error("remove tree", remove(ctx, parent, path.Base(tree), 0))
}

// deepest limits the number of open descriptors, one per level.
const deepest = 512

func remove(ctx context.Context, dir *os.File, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%q: %w", name, err)
	}
	if depth > deepest {
		return fmt.Errorf("%q: more than %d levels deep", name, deepest)
	}
	d, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(256)
		for _, n := range names {
			if err := remove(ctx, d, n, depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		// Removing entries may have changed the position in the listing.
		if _, err := d.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
