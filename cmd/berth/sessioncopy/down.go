package sessioncopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
)

// down copies files of the container to this machine.
func (c *copier) down(ctx context.Context, sources []string, target string) error {
	var found []client.SessionFile
	for _, source := range sources {
		_, pattern, _ := parsePath(source)
		list, err := c.expand(ctx, pattern)
		if err != nil {
			return err
		}
		found = append(found, list...)
	}
	info, err := os.Stat(target)
	into := err == nil && info.IsDir()
	if !into && (len(found) > 1 || strings.HasSuffix(target, string(filepath.Separator))) {
		return fmt.Errorf("%s is not a directory: %w", target, errdefs.ErrFailedPrecondition)
	}
	dir, name := filepath.Split(target)
	if into {
		dir = target
	}
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir) // files from the container stay below it
	if err != nil {
		return err
	}
	defer root.Close()
	c.progress = c.app.Progress("downloaded")
	defer c.progress.Clear()
	c.progress.Files = len(found)
	for _, f := range found {
		as := name
		if into {
			as = f.Name
		}
		if err := c.receive(ctx, root, f, as); err != nil {
			return fmt.Errorf("copy %q: %w", f.Path, err)
		}
	}
	return nil
}

// receive copies one file, or a directory with its entries.
func (c *copier) receive(ctx context.Context, root *os.Root, f client.SessionFile, as string) error {
	if !safe(as) {
		return fmt.Errorf("a file of this machine cannot have the name %q: %w", as, errdefs.ErrInvalidArgument)
	}
	if isDir(f) {
		if !c.recursive {
			return fmt.Errorf("is a directory; add -r: %w", errdefs.ErrInvalidArgument)
		}
		return c.unpack(ctx, root, f.Path, as)
	}
	if f.Type == "OTHER" || f.TargetType == "OTHER" {
		return fmt.Errorf("is neither a file nor a directory: %w", errdefs.ErrInvalidArgument)
	}
	c.progress.Total += f.Size
	out, err := root.OpenFile(as, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, modeOf(f))
	if err != nil {
		return err
	}
	d := &client.SessionDownload{ContainerRef: c.at, Path: f.Path, Progress: c.progress.File(f.Path), Warn: c.waiting}
	err = errors.Join(d.CopyTo(ctx, c.client, out), out.Close())
	if err == nil && c.times {
		err = root.Chtimes(as, f.ModifiedAt, f.ModifiedAt)
	}
	if err == nil {
		c.progress.Done()
	}
	return err
}

func safe(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && !strings.ContainsRune(name, filepath.Separator)
}

func isDir(f client.SessionFile) bool {
	return f.Type == "DIRECTORY" || f.Type == "SYMLINK" && f.TargetType == "DIRECTORY"
}

// modeOf parses permissions as ls prints them.
func modeOf(f client.SessionFile) os.FileMode {
	if len(f.Mode) != 10 || f.Type != "FILE" {
		return 0o644
	}
	var mode os.FileMode
	for i, r := range f.Mode[1:] {
		if r != '-' && r != 'S' && r != 'T' {
			mode |= 1 << (8 - i)
		}
	}
	return mode
}

// unpack copies a directory as one stream. Whatever paths the stream has, all files stay below
// root.
func (c *copier) unpack(ctx context.Context, root *os.Root, from, as string) error {
	stream, err := c.client.SessionArchive(ctx, c.at, from)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := root.MkdirAll(as, 0o777); err != nil {
		return err
	}
	dir, err := root.OpenRoot(as)
	if err != nil {
		return err
	}
	defer dir.Close()
	links := 0
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the connection ended before the directory was complete: %w", err)
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			links++
			continue
		}
		if err := c.entry(dir, h, r); err != nil {
			return err
		}
	}
	if links > 0 {
		c.app.Note("berth: left out %d links in %s", links, from)
	}
	c.progress.Done()
	return nil
}

// entry writes one entry of an archive.
func (c *copier) entry(dir *os.Root, h *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(path.Clean(h.Name))
	if h.Typeflag == tar.TypeDir {
		return dir.MkdirAll(name, 0o777)
	}
	if err := dir.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	out, err := dir.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	moved := c.progress.File(h.Name)
	n, err := io.Copy(out, content)
	moved(n)
	if err = errors.Join(err, out.Close()); err == nil && c.times {
		err = dir.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

// expand finds the files that a path or pattern names.
func (c *copier) expand(ctx context.Context, pattern string) ([]client.SessionFile, error) {
	clean := path.Clean(pattern)
	if pattern == "" || clean == "." || clean == "/" || clean == ".." || strings.HasSuffix(clean, "/..") {
		return []client.SessionFile{{Name: "files", Path: pattern, Type: "DIRECTORY"}}, nil
	}
	dirs := []string{path.Dir(clean)}
	if dir, wild := path.Dir(clean), strings.ContainsAny(path.Dir(clean), `*?[`); wild {
		above, err := c.expand(ctx, dir)
		if err != nil {
			return nil, err
		}
		dirs = nil
		for _, f := range above {
			if isDir(f) {
				dirs = append(dirs, f.Path)
			}
		}
	}
	var found []client.SessionFile
	for _, dir := range dirs {
		list, err := c.client.SessionFiles(ctx, c.at, dir)
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", dir, err)
		}
		for _, f := range list {
			ok, err := path.Match(path.Base(clean), f.Name)
			if err != nil {
				return nil, fmt.Errorf("the pattern %q is not valid: %w", pattern, errdefs.ErrInvalidArgument)
			}
			if ok || f.Name == path.Base(clean) {
				found = append(found, f)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no file in the session matches %q: %w", pattern, errdefs.ErrNotFound)
	}
	return found, nil
}
