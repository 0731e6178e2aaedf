package commit

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// Whiteouts of the OCI image specification.
const (
	whiteout       = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// write writes the entries as a compressed archive.
func (m *maker) write(ctx context.Context, entries []*entry, file string) (l Layer, err error) {
	if len(entries) == 0 {
		return l, nil
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return l, fmt.Errorf("write layer: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed := &counted{w: out, sum: sha256.New()}
	var to packer
	if m.src.Indexed {
		to = newIndexed(packed)
	} else if to, err = newPlain(packed); err != nil {
		return l, fmt.Errorf("write layer: %w", err)
	}
	defer to.abort()
	a := &archive{Writer: tar.NewWriter(to), links: map[inode]string{}, ctx: ctx, done: func(n int64) {
		if m.report != nil {
			m.report(Compressing, n, max(n, m.total))
		}
	}}
	for _, e := range entries {
		if err := a.add(e); err != nil {
			return l, fmt.Errorf("write /%s to the layer: %w", e.path, full(err))
		}
	}
	l = Layer{Path: file, Entries: len(entries), Newest: a.newest}
	if err := a.Close(); err != nil {
		return l, fmt.Errorf("write layer: %w", full(err))
	}
	if err := to.finish(&l); err != nil {
		return l, fmt.Errorf("write layer: %w", full(err))
	}
	l.Digest, l.Size = digest.NewDigest(digest.SHA256, packed.sum), packed.n
	return l, nil
}

// archive writes entries with stable headers: no access times, no names of users, whole seconds.
type archive struct {
	*tar.Writer
	ctx    context.Context
	links  map[inode]string // the first path of a file with several
	newest time.Time
	sent   int64
	done   func(int64)
}

func (a *archive) add(e *entry) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if e.gone {
		dir, name := path.Split(e.path)
		return a.WriteHeader(empty(dir + whiteout + name))
	}
	h := &tar.Header{
		Format: tar.FormatPAX, Name: e.path, Mode: int64(e.stat.Mode & 0o7777), Uid: int(e.stat.Uid), Gid: int(e.stat.Gid),
		ModTime: time.Unix(e.stat.Mtim.Sec, 0),
	}
	if h.ModTime.After(a.newest) {
		a.newest = h.ModTime
	}
	switch e.kind() {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, e.path+"/"
	case unix.S_IFLNK:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		return a.file(h, e)
	}
	if err := a.WriteHeader(h); err != nil || !e.opaque {
		return err
	}
	return a.WriteHeader(empty(e.path + "/" + whiteoutOpaque))
}

func (a *archive) file(h *tar.Header, e *entry) error {
	id := inode{uint64(e.stat.Dev), e.stat.Ino}
	if first, linked := a.links[id]; linked {
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return a.WriteHeader(h)
	}
	if e.stat.Nlink > 1 {
		a.links[id] = e.path
	}
	h.Typeflag, h.Size = tar.TypeReg, e.file.size
	for _, name := range sortedKeys(e.attrs) {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords["SCHILY.xattr."+name] = e.attrs[name]
	}
	if err := a.WriteHeader(h); err != nil {
		return err
	}
	f, err := os.Open(e.file.path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(a.Writer, f)
	a.sent += n
	a.done(a.sent)
	return err
}

// empty is the header of a whiteout.
func empty(name string) *tar.Header {
	return &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: name, ModTime: time.Unix(0, 0)}
}

// counted hashes and counts the bytes that pass.
type counted struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	return n, err
}
