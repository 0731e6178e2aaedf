package builder

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/containerd/errdefs"
	"github.com/tonistiigi/fsutil"

	"github.com/berthhq/berth/agent/build"
)

const dockerfileName = "Dockerfile"

// unpacked are the files of a build on the project's disk.
type unpacked struct {
	dir                 string
	context, dockerfile fsutil.FS
	attributes          map[string]string
}

// unpack writes the Dockerfile and the context into a new directory.
func unpack(ctx context.Context, r build.Request) (u unpacked, err error) {
	if u.attributes, err = attributes(r); err != nil {
		return u, err
	}
	old, err := filepath.Glob(filepath.Join(r.Root, "files-*")) // of builders that were killed
	if err != nil {
		return u, err
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return u, err
		}
	}
	if u.dir, err = os.MkdirTemp(r.Root, "files-"); err != nil {
		return u, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(u.dir))
		}
	}()
	if r.Source.ID != "" {
		if err := os.Rename(sourceDir(r.Root, r.Source.ID), filepath.Join(u.dir, "context")); err != nil {
			return u, fmt.Errorf("the files of the repository are no longer on this machine: %w", err)
		}
	}
	for _, name := range []string{"context", "dockerfile"} {
		if name == "context" && r.Source.ID != "" {
			continue
		}
		if err := os.Mkdir(filepath.Join(u.dir, name), 0o755); err != nil {
			return u, err
		}
	}
	if err := os.WriteFile(filepath.Join(u.dir, "dockerfile", dockerfileName), []byte(r.Dockerfile), 0o644); err != nil {
		return u, err
	}
	sent, err := fetch(ctx, r.Files)
	if err != nil {
		return u, err
	}
	defer sent.Close()
	for _, archive := range []io.Reader{sent, bytes.NewReader(r.Context)} {
		if err := extract(archive, filepath.Join(u.dir, "context")); err != nil {
			return u, fmt.Errorf("unpack the context: %w", explained(err, r.Root))
		}
	}
	if u.context, err = fsutil.NewFS(filepath.Join(u.dir, "context")); err != nil {
		return u, err
	}
	u.dockerfile, err = fsutil.NewFS(filepath.Join(u.dir, "dockerfile"))
	return u, err
}

// extract unpacks directories, files and symbolic links of a tar archive into a directory, and nothing
// outside it. Another kind of entry is an error.
func extract(in io.Reader, dir string) error {
	buffered := bufio.NewReaderSize(in, 256<<10)
	magic, err := buffered.Peek(2)
	if errors.Is(err, io.EOF) && len(magic) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var r io.Reader = buffered
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = z
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := entry(root, h, archive); err != nil {
			return fmt.Errorf("entry %.200q: %w", h.Name, err)
		}
	}
}

func entry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the name leads out of the context: %w", errdefs.ErrInvalidArgument)
	}
	if name == "." {
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode) & 0o777
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return err
		}
		return root.Chmod(name, mode|0o700)
	case tar.TypeReg:
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() { // of the first archive
			if err := root.Remove(name); err != nil {
				return err
			}
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
			return err
		}
		return root.Chtimes(name, time.Time{}, h.ModTime)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fmt.Errorf("it is neither a file nor a directory nor a symbolic link: %w", errdefs.ErrInvalidArgument)
}
