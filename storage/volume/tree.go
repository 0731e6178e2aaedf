package volume

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// Tree returns a page of the regular files below a directory, or the one file at the path,
// ordered by the parts of their paths, and whether there are more. It continues after a file
// of the previous page. Links and other entries that are not files are left out.
func (f *Folder) Tree(ctx context.Context, path string, limit int, after string) (files []Entry, more bool, err error) {
	path, err = Clean(path)
	if err != nil {
		return nil, false, err
	}
	var parts []string
	if after != "" {
		if after, err = Clean(after); err != nil {
			return nil, false, err
		}
		rest, below := after, true
		if path != "" {
			rest, below = strings.CutPrefix(after, path+"/")
		}
		if !below && after != path {
			return nil, false, invalid("after %q: is not below %q", after, path)
		}
		parts = strings.Split(rest, "/")
	}
	if path != "" {
		e, err := f.Stat(path)
		if err != nil {
			return nil, false, err
		}
		if e.Mode&unix.S_IFMT == unix.S_IFREG {
			if after != "" {
				return nil, false, nil
			}
			return []Entry{e}, false, nil
		}
	}
	w := treeWalk{ctx: ctx, folder: f, limit: min(max(limit, 1), MaxPage)}
	err = w.directory(path, parts)
	if errors.Is(err, errFull) {
		return w.files, true, nil
	}
	return w.files, false, err
}

// errFull ends a walk when the page is full.
var errFull = errors.New("the page is full")

type treeWalk struct {
	ctx    context.Context
	folder *Folder
	limit  int
	size   int // of the paths
	files  []Entry
}

// directory adds the files below a directory that come after a path, given in parts.
func (w *treeWalk) directory(path string, after []string) error {
	cursor := ""
	if len(after) > 0 {
		if len(after) > 1 {
			err := w.directory(join(path, after[0]), after[1:])
			if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsInvalidArgument(err) { // no longer a directory
				return err
			}
		}
		cursor = base64.RawURLEncoding.EncodeToString([]byte(after[0]))
	}
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		entries, next, err := w.folder.List(path, MaxPage, cursor)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch e.Mode & unix.S_IFMT {
			case unix.S_IFDIR:
				err = w.directory(e.Path, nil)
				if errdefs.IsNotFound(err) { // deleted since
					err = nil
				}
			case unix.S_IFREG:
				err = w.add(e)
			}
			if err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
}

func (w *treeWalk) add(e Entry) error {
	if len(w.files) == w.limit || w.size > pageBytes {
		return errFull
	}
	w.files, w.size = append(w.files, e), w.size+len(e.Path)
	return nil
}
