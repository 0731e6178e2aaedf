package volume

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
)

// MaxPage is the maximum number of entries of a page. A page also ends when its paths reach
// pageBytes, because a gRPC message has 4 MiB at most.
const (
	MaxPage   = 1000
	pageBytes = 1 << 20
)

// List returns a page of a directory in the order of the names' bytes. The cursor is the last
// name of the previous page, so concurrent changes neither repeat nor hide other entries. It
// reads all names, but stores and stats only those of the page: 100,000 entries take about 30
// ms.
func (f *Folder) List(path string, limit int, cursor string) ([]Entry, string, error) {
	path, err := Clean(path)
	if err != nil {
		return nil, "", err
	}
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, "", invalid("cursor: is not one that a page returned")
	}
	d, err := followDir(f.dir, path, inside)
	if err != nil {
		return nil, "", classify("list", path, err)
	}
	defer d.Close()
	names, more, err := firstNames(d, min(max(limit, 1), MaxPage), string(after))
	if err != nil {
		return nil, "", classify("list", path, err)
	}
	if fit := pageBytes / (len(path) + folderpath.MaxName); len(names) > fit {
		names, more = names[:fit], true
	}
	entries := make([]Entry, 0, len(names))
	for _, n := range names {
		name := n.name
		var st unix.Stat_t
		if err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if errors.Is(err, unix.ENOENT) { // deleted since
				continue
			}
			return nil, "", classify("list", join(path, name), err)
		}
		entries = append(entries, entry(join(path, name), &st))
	}
	if !more {
		return entries, "", nil
	}
	return entries, base64.RawURLEncoding.EncodeToString([]byte(names[len(names)-1].name)), nil
}

// entryName is a name in a directory with its type at the time of the read.
type entryName struct {
	name string
	kind byte // unix.DT_*
}

// firstNames returns the first limit names after a given one, in order, and whether there are
// more. It buffers twice as many: when the buffer is full, it drops the later half and ignores
// later names from then on.
func firstNames(d *os.File, limit int, after string) (names []entryName, more bool, err error) {
	if _, err := d.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	hold, last := max(2*limit, 8192), ""
	keep := func() {
		slices.SortFunc(names, func(a, b entryName) int { return strings.Compare(a.name, b.name) })
		if len(names) > limit {
			more, names = true, names[:limit]
			last = names[limit-1].name
		}
	}
	err = eachEntry(d, func(name []byte, kind byte) {
		if string(name) <= after || last != "" && string(name) > last { // no allocation in a comparison
			return
		}
		if names = append(names, entryName{string(name), kind}); len(names) == hold {
			keep()
		}
	})
	keep()
	return names, more, err
}

// eachName calls f with every name in d except "." and "..". The name is only valid during the
// call.
func eachName(d *os.File, f func([]byte)) error {
	return eachEntry(d, func(name []byte, _ byte) { f(name) })
}

// eachEntry is eachName with the type of the entry, one of unix.DT_*; DT_UNKNOWN if the file
// system does not report it.
func eachEntry(d *os.File, f func(name []byte, kind byte)) error {
	buf := make([]byte, 128<<10)
	const reclen, header = unsafe.Offsetof(unix.Dirent{}.Reclen), unsafe.Offsetof(unix.Dirent{}.Name)
	const typ = unsafe.Offsetof(unix.Dirent{}.Type)
	for {
		n, err := unix.ReadDirent(int(d.Fd()), buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		for b := buf[:n]; len(b) >= int(header); {
			size := int(binary.NativeEndian.Uint16(b[reclen:]))
			name := b[header:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if string(name) != "." && string(name) != ".." {
				f(name, b[typ])
			}
			b = b[size:]
		}
	}
}

// kindOf returns the type of an entry, from the listing or from a stat.
func kindOf(d *os.File, name string, reported byte) byte {
	var st unix.Stat_t
	if reported != unix.DT_UNKNOWN || unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return reported
	}
	return byte((st.Mode & unix.S_IFMT) >> 12) // the encoding of DT_*
}

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
