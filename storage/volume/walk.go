package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
)

// Node is a directory or regular file of a Walk.
type Node struct {
	Path string // relative to the walked directory
	Info fs.FileInfo
	File *os.File // open for reading; nil for a directory
}

// Walk calls f for every directory and regular file below dir, and closes dir. It never
// follows links, and leaves out links, FIFOs, sockets, devices and entries that vanish
// meanwhile. Its memory does not grow with the tree. It leaves out the contents of directories
// that are too deep, and calls deep with their paths.
func Walk(ctx context.Context, dir *os.File, f func(Node) error, deep func(path string)) error {
	return (&walker{ctx, f, deep}).walk(dir, "", 0)
}

// walkDepth limits the open descriptors of one walk.
const walkDepth = folderpath.MaxDepth

type walker struct {
	ctx  context.Context
	f    func(Node) error
	deep func(path string)
}

func (w *walker) walk(dir *os.File, path string, depth int) error {
	defer dir.Close()
	if depth >= walkDepth {
		w.deep(path)
		return nil
	}
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err := w.visit(dir, name, join(path, name), depth); err != nil {
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

func (w *walker) visit(dir *os.File, name, path string, depth int) error {
	file, err := openRegular(dir, name, unix.O_RDONLY)
	if errors.Is(err, unix.EISDIR) {
		return w.descend(dir, name, path, depth)
	}
	if err != nil {
		return skipped(path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat %q: %w", path, err)
	}
	return w.f(Node{Path: path, Info: info, File: file})
}

func (w *walker) descend(dir *os.File, name, path string, depth int) error {
	sub, err := openDir(dir, name, inside)
	if err != nil {
		return skipped(path, err)
	}
	info, err := sub.Stat()
	if err == nil {
		err = w.f(Node{Path: path, Info: info})
	}
	if err != nil {
		return errors.Join(err, sub.Close())
	}
	return w.walk(sub, path, depth+1)
}

// skipped returns nil for the errors of entries that a walk leaves out.
func skipped(path string, err error) error {
	var special notRegular
	for _, e := range []error{unix.ENOENT, unix.ELOOP, unix.EXDEV, unix.ENOTDIR} {
		if errors.Is(err, e) {
			return nil
		}
	}
	if errors.As(err, &special) {
		return nil
	}
	return classify("read", path, err)
}
