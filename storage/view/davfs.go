package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/net/webdav"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// davFS implements webdav.FileSystem on a tree, for one request.
type davFS struct {
	t *tree
	r *request
}

// davError converts an error to the form that package webdav expects. It records errors that the
// package has no status for.
func (f davFS) davError(err error) error {
	switch {
	case err == nil:
		return nil
	case errdefs.IsNotFound(err):
		return os.ErrNotExist
	case errdefs.IsAlreadyExists(err):
		return os.ErrExist
	}
	return f.r.refuse(err)
}

func (f davFS) Mkdir(ctx context.Context, name string, _ fs.FileMode) error {
	return f.davError(f.t.mkdir(ctx, name))
}

func (f davFS) RemoveAll(ctx context.Context, name string) error {
	return f.davError(f.t.remove(ctx, name, true))
}

func (f davFS) Rename(ctx context.Context, from, to string) error {
	return f.davError(f.t.rename(ctx, from, to, false))
}

func (f davFS) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	i, err := f.t.stat(ctx, name)
	if err != nil {
		return nil, f.davError(err)
	}
	return i, nil
}

// OpenFile opens a new file for writing if the file is to be truncated, and an existing file for
// reading otherwise, because package webdav opens files for writing only to read their properties.
func (f davFS) OpenFile(ctx context.Context, name string, flag int, _ fs.FileMode) (webdav.File, error) {
	if flag&os.O_TRUNC != 0 {
		d, at, err := f.t.stage(ctx, name, max(f.r.size, 0))
		if err != nil {
			return nil, f.davError(err)
		}
		if f.r.modified != nil {
			d.Set(volume.Attributes{Modified: f.r.modified})
		}
		return &writing{fs: f, ctx: ctx, staged: d, at: at}, nil
	}
	i, err := f.t.stat(ctx, name)
	if err != nil {
		return nil, f.davError(err)
	}
	return &reading{fs: f, ctx: ctx, name: name, info: i}, nil
}

// reading is a directory, or a file that is opened by the first read.
type reading struct {
	fs   davFS
	ctx  context.Context
	name string
	info info
	file *os.File
	at   place
	read int64
}

func (f *reading) opened() error {
	if f.file != nil {
		return nil
	}
	var err error
	f.file, f.at, err = f.fs.t.open(f.ctx, f.name)
	return f.fs.davError(err)
}

func (f *reading) Read(p []byte) (int, error) {
	if err := f.opened(); err != nil {
		return 0, err
	}
	if err := f.fs.t.still(f.ctx, f.at.folder, false); err != nil {
		return 0, f.fs.davError(err)
	}
	n, err := f.file.Read(p)
	f.read += int64(n)
	return n, err
}

// sentPart is the number of bytes between two checks of the permission to read a file.
const sentPart = 1 << 20

// sendTo sends the next n bytes with sendfile(2) if w leads to a connection.
func (f *reading) sendTo(w io.Writer, n int64) (sent int64, err error) {
	if err := f.opened(); err != nil {
		return 0, err
	}
	for sent < n && err == nil {
		if err := f.fs.t.still(f.ctx, f.at.folder, false); err != nil {
			return sent, f.fs.davError(err)
		}
		var k int64
		k, err = io.CopyN(w, f.file, min(n-sent, sentPart))
		f.read += k
		sent += k
	}
	return sent, err
}

func (f *reading) Seek(offset int64, whence int) (int64, error) {
	if err := f.opened(); err != nil {
		return 0, err
	}
	f.read = 0 // a seek for the size or the type is not a read
	return f.file.Seek(offset, whence)
}

func (f *reading) Readdir(int) ([]fs.FileInfo, error) {
	all, err := f.fs.t.list(f.ctx, f.name)
	return all, f.fs.davError(err)
}

func (f *reading) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *reading) Write([]byte) (int, error) { return 0, fs.ErrPermission }

func (f *reading) Close() error {
	if f.file == nil {
		return nil
	}
	f.fs.t.did(f.at, storagepb.FileOperation_READ, f.at.path, f.read)
	return f.file.Close()
}

// writing is a file that is published when it is closed, if all of its bytes have arrived.
type writing struct {
	fs     davFS
	ctx    context.Context
	staged *transfer.StagedFile
	at     place
	end    int64
	whole  bool
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// ReadFrom receives a whole file. The file is published only if the source ends with EOF.
func (f *writing) ReadFrom(src io.Reader) (int64, error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for begun := f.end; ; {
		n, err := src.Read(*buf)
		if n > 0 {
			if _, err := f.Write((*buf)[:n]); err != nil {
				return f.end - begun, err
			}
		}
		if errors.Is(err, io.EOF) {
			f.whole = true
			return f.end - begun, nil
		}
		if err != nil {
			return f.end - begun, f.fs.r.refuse(fmt.Errorf("receive: %w: %w", err, errdefs.ErrInvalidArgument))
		}
	}
}

func (f *writing) Write(p []byte) (int, error) {
	if err := f.fs.t.still(f.ctx, f.at.folder, true); err != nil {
		return 0, f.fs.davError(err)
	}
	n, err := f.staged.WriteAt(p, f.end)
	f.end += int64(n)
	return n, f.fs.davError(err)
}

func (f *writing) Stat() (fs.FileInfo, error) {
	i, err := f.staged.Stat()
	if err != nil {
		return nil, f.fs.davError(err)
	}
	return info{name: f.at.path, mode: 0o644, size: i.Size(), modified: i.ModTime()}, nil
}

func (f *writing) Close() error {
	if !f.whole {
		f.staged.Discard()
		return nil
	}
	if err := f.fs.t.still(f.ctx, f.at.folder, true); err != nil {
		f.staged.Discard()
		return f.fs.davError(err)
	}
	_, absent := f.fs.t.statAt(f.at)
	err := f.staged.Publish(f.fs.r.when)
	if errdefs.IsNotFound(err) {
		return f.fs.r.refuse(fmt.Errorf("%w: %w", err, errdefs.ErrConflict))
	}
	if err == nil {
		f.fs.r.replaced = absent == nil
		f.fs.t.did(f.at, storagepb.FileOperation_WROTE, f.at.path, f.end)
	}
	return f.fs.davError(err)
}

func (f *writing) Read([]byte) (int, error)           { return 0, fs.ErrPermission }
func (f *writing) Seek(int64, int) (int64, error)     { return 0, fs.ErrPermission }
func (f *writing) Readdir(int) ([]fs.FileInfo, error) { return nil, fs.ErrPermission }

// info implements fs.FileInfo for a file or directory.
type info struct {
	name     string
	dir      bool
	mode     fs.FileMode // permissions
	size     int64
	modified time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.dir }
func (i info) ModTime() time.Time { return i.modified }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | i.mode
	}
	return i.mode
}

// ContentType returns the type by the extension of the name. The contents are not read.
func (i info) ContentType(context.Context) (string, error) {
	if t := mime.TypeByExtension(path.Ext(i.name)); t != "" {
		return t, nil
	}
	return "application/octet-stream", nil
}

// ETag returns the entity tag.
func (i info) ETag(context.Context) (string, error) { return entityTag(i.size, i.modified), nil }

// shown reports whether a view contains an entry: files and directories with names that all clients
// can use. Links, FIFOs, sockets and devices are hidden.
func shown(e volume.Entry) bool {
	kind := e.Mode & unix.S_IFMT
	return folderpath.Legible(e.Name) && (kind == unix.S_IFREG || kind == unix.S_IFDIR)
}

// infoOf describes an entry of a folder to a client. Without the permission to write, the mode has
// no write bits.
func (o *open) infoOf(e volume.Entry) info {
	i := info{name: e.Name, dir: e.Mode&unix.S_IFMT == unix.S_IFDIR, mode: fs.FileMode(e.Mode & 0o777), size: e.Size, modified: e.Modified}
	if !o.write {
		i.mode &^= 0o222
	}
	return i
}
