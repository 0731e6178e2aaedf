package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// entry is one path of the writable layer. The walk goes through directories that processes of the
// container change at the same time: it opens each name within its directory and never follows a
// link out of the layer.
type entry struct {
	path   string
	stat   syscall.Stat_t
	link   string // of a symbolic link
	gone   bool   // the path was deleted from the image
	opaque bool   // a directory that hides the one of the image
	attrs  map[string]string
	file   *staged // content of a regular file
}

func (e *entry) kind() uint32 { return e.stat.Mode & unix.S_IFMT }

// visitor receives the entries of a walk, a directory before its contents. dir is the directory of the
// entry, and name its name there.
type visitor func(dir *os.Root, name string, e *entry) error

// walk visits the writable layer in the order of names.
func (m *maker) walk(ctx context.Context, visit visitor) error {
	root, err := os.OpenRoot(m.src.Upper)
	if err != nil {
		return fmt.Errorf("open the writable layer: %w", err)
	}
	defer root.Close()
	return m.walkIn(ctx, root, "", visit)
}

func (m *maker) walkIn(ctx context.Context, dir *os.Root, at string, visit visitor) error {
	names, err := list(dir)
	if err != nil {
		return vanished(err)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := strings.TrimPrefix(at+"/"+name, "/")
		if m.exclude.drops(p) {
			continue
		}
		e, err := look(dir, name, p)
		if err != nil || e == nil {
			if err = vanished(err); err != nil {
				return err
			}
			continue
		}
		if err := visit(dir, name, e); err != nil {
			return err
		}
		if e.kind() != unix.S_IFDIR {
			continue
		}
		below, err := dir.OpenRoot(name)
		if err != nil {
			if err = vanished(err); err != nil {
				return err
			}
			continue
		}
		err = m.walkIn(ctx, below, p, visit)
		below.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// vanished returns nil for errors about files that the container removed or replaced during the walk.
// A later walk sees the change, the last one while the container is paused.
func vanished(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

func list(dir *os.Root) ([]string, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// look reads the properties of a path; nil for sockets and devices, which an image cannot have.
func look(dir *os.Root, name, at string) (*entry, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	e := &entry{path: at, stat: *info.Sys().(*syscall.Stat_t)}
	switch e.kind() {
	case unix.S_IFCHR:
		if e.stat.Rdev != 0 {
			return nil, nil
		}
		e.gone = true
	case unix.S_IFLNK:
		e.link, err = dir.Readlink(name)
	case unix.S_IFDIR:
		err = e.lookInside(dir, name)
	case unix.S_IFREG, unix.S_IFIFO:
	default:
		return nil, nil
	}
	return e, err
}

// Attributes of overlayfs.
const (
	opaqueAttr   = "trusted.overlay.opaque"
	redirectAttr = "trusted.overlay.redirect"
	metacopyAttr = "trusted.overlay.metacopy"
)

// lookInside reads the attributes of a directory.
func (e *entry) lookInside(dir *os.Root, name string) error {
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := attributes(f, opaqueAttr, redirectAttr)
	if err != nil {
		return fmt.Errorf("read attributes of /%s: %w", e.path, err)
	}
	if _, moved := all[redirectAttr]; moved {
		return fmt.Errorf("directory /%s was moved with overlayfs's redirect_dir, which cannot become a layer: copy it instead: %w", e.path, errdefs.ErrFailedPrecondition)
	}
	e.opaque = all[opaqueAttr] == "y"
	return nil
}

// attributes reads extended attributes of an open file. Missing ones are left out.
func attributes(f *os.File, names ...string) (map[string]string, error) {
	var out map[string]string
	buf := make([]byte, 1024)
	for _, name := range names {
		n, err := unix.Fgetxattr(int(f.Fd()), name, buf)
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = string(buf[:n])
	}
	return out, nil
}

// lower finds paths in the layers of the image.
type lower []*os.Root

func openLower(dirs []string) (lower, error) {
	var l lower
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("open a layer of the image: %w", err)
		}
		l = append(l, root)
	}
	return l, nil
}

func (l lower) close() {
	for _, root := range l {
		root.Close()
	}
}

// find returns the uppermost layer with the path, and false if the image does not have it. Opaque
// directories of layers are not considered: a path that is found too often stays in the image that is
// written, or repeats what the image has.
func (l lower) find(p string) (*os.Root, syscall.Stat_t, bool) {
	for _, root := range l {
		info, err := root.Lstat(p)
		if err != nil {
			continue
		}
		st := *info.Sys().(*syscall.Stat_t)
		return root, st, st.Mode&unix.S_IFMT != unix.S_IFCHR
	}
	return nil, syscall.Stat_t{}, false
}

// same reports whether a directory of the writable layer only repeats the image's: overlayfs creates
// it when anything below it changes.
func (l lower) same(e *entry) bool {
	_, st, ok := l.find(e.path)
	return ok && !e.opaque && st.Mode == e.stat.Mode && st.Uid == e.stat.Uid && st.Gid == e.stat.Gid
}

// settled reports whether a file's times prove that it has not changed since they were read at a
// moment: the kernel's clock for them has steps of up to 10 ms.
func settled(st *syscall.Stat_t, at time.Time) bool {
	return at.Sub(time.Unix(st.Ctim.Unix())) > 50*time.Millisecond
}

// unchanged reports whether two reads of a file's properties are of the same content.
func unchanged(a, b *syscall.Stat_t) bool {
	return a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// sortedKeys returns the names of attributes in a fixed order.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
