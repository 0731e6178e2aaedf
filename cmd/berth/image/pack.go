package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// maxPacked is the size of an archive that is a part of the request. A larger one is sent in parts before.
const maxPacked = 640 << 10

// pack packs a directory. A small archive becomes the context of the input, and a larger one the file f.archive.
func (f *buildFlags) pack(dir string, in *client.BuildImageInput) error {
	file, err := os.CreateTemp("", "berth-build-*.tar.gz")
	if err != nil {
		return err
	}
	f.archive = file
	if err := os.Remove(file.Name()); err != nil { // it stays until it is closed
		return err
	}
	if err := pack(file, dir, nil); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if size <= maxPacked {
		b := make([]byte, size)
		if _, err := file.ReadAt(b, 0); err != nil {
			return err
		}
		in.Context = base64.StdEncoding.EncodeToString(b)
		f.discard()
		return nil
	}
	if in.Kind != "DEVCONTAINER" {
		return nil
	}
	// The manager reads the Dockerfile that a devcontainer.json names, so it is also a part of the request.
	var small bytes.Buffer
	if err := pack(&small, dir, containerFile); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	in.Context = base64.StdEncoding.EncodeToString(small.Bytes())
	return nil
}

// containerFile is the form of the names of Dockerfiles.
var containerFile = regexp.MustCompile(`(?i)(docker|container)file`)

// send sends the archive, if there is one.
func (f *buildFlags) send(ctx context.Context, a *cli.App, c *client.Client, in *client.BuildImageInput) (err error) {
	if f.archive == nil {
		return nil
	}
	if _, err := f.archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	progress := a.Progress("Sent")
	defer progress.Clear()
	in.Files, err = c.SendBuildFiles(ctx, f.archive, progress.File("the files of the build"), func(err error) { progress.Pause(err.Error()) })
	return err
}

// discard removes the archive.
func (f *buildFlags) discard() {
	if f.archive != nil {
		_ = f.archive.Close()
		f.archive = nil
	}
}

// pack writes the files of a directory as a compressed tar archive that depends only on their names, contents and
// modes. only, if it is not nil, selects files by their names.
func pack(out io.Writer, dir string, only *regexp.Regexp) error {
	z := gzip.NewWriter(out)
	w := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if only != nil && (!d.Type().IsRegular() || !only.MatchString(d.Name())) {
			return nil
		}
		return add(w, name, filepath.ToSlash(rel), d)
	})
	return errors.Join(err, w.Close(), z.Close())
}

// add writes a file, a directory or a symbolic link.
func add(w *tar.Writer, name, as string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: as, Mode: int64(info.Mode().Perm())}
	switch {
	case d.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, as+"/"
		return w.WriteHeader(h)
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(name); err != nil {
			return err
		}
		return w.WriteHeader(h)
	case !info.Mode().IsRegular():
		return nil // sockets and pipes
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
