package view

import (
	"context"
	"io/fs"
	"mime"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/storage/volume"
)

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

// shown reports whether a view contains an entry: files and directories whose names every
// client can write. Links, FIFOs, sockets and devices are hidden.
func shown(e volume.Entry) bool {
	kind := e.Mode & unix.S_IFMT
	return folderpath.Legible(e.Name) && (kind == unix.S_IFREG || kind == unix.S_IFDIR)
}

// infoOf describes an entry of a folder to a client. If the client can only read the folder,
// the mode has no write permission.
func (o *open) infoOf(e volume.Entry) info {
	i := info{name: e.Name, dir: e.Mode&unix.S_IFMT == unix.S_IFDIR, mode: fs.FileMode(e.Mode & 0o777), size: e.Size, modified: e.Modified}
	if !o.write {
		i.mode &^= 0o222
	}
	return i
}
