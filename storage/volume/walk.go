package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Node is a directory or regular file that Walk has come to.
type Node struct {
	Path string // below the directory that is walked
	Info fs.FileInfo
	File *os.File // open for reading; nil for a directory
}

// Walk calls f for every directory and regular file below dir, which it
// closes. Links are never followed; they, FIFOs, sockets, devices and what
// vanishes meanwhile are left out. Memory does not grow with the tree.
func Walk(ctx context.Context, dir *os.File, f func(Node) error) error {
	return walk(ctx, dir, "", 0, f)
}

// walkDepth bounds the open descriptors of one walk.
const walkDepth = 512

func walk(ctx context.Context, dir *os.File, path string, depth int, f func(Node) error) error {
	defer dir.Close()
	if depth > walkDepth {
		return invalid("path %q: is more than %d levels deep", path[:64]+"…", walkDepth)
	}
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := visit(ctx, dir, name, join(path, name), depth, f); err != nil {
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

func visit(ctx context.Context, dir *os.File, name, path string, depth int, f func(Node) error) error {
	file, err := openRegular(dir, name, unix.O_RDONLY)
	if errors.Is(err, unix.EISDIR) {
		return descend(ctx, dir, name, path, depth, f)
	}
	if err != nil {
		return skipped(path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat %q: %w", path, err)
	}
	return f(Node{Path: path, Info: info, File: file})
}

func descend(ctx context.Context, dir *os.File, name, path string, depth int, f func(Node) error) error {
	sub, err := openDir(dir, name, inside)
	if err != nil {
		return skipped(path, err)
	}
	info, err := sub.Stat()
	if err == nil {
		err = f(Node{Path: path, Info: info})
	}
	if err != nil {
		return errors.Join(err, sub.Close())
	}
	return walk(ctx, sub, path, depth+1, f)
}

// skipped turns what a walk leaves out into nil.
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
