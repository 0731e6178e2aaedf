package volume

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/foldergroup"
	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// Folder is an open folder. Every method resolves paths from its descriptor, so no change that
// a container makes to the tree can lead outside.
type Folder struct {
	vol   *Volume
	dir   *os.File
	scope *os.File
	// Path is the folder's path below the volume's root.
	Path string
}

// Entry is one file, directory or link of a folder.
type Entry struct {
	Name     string
	Path     string // below the folder
	Mode     uint32 // as in stat(2), with the file type
	Size     int64
	Modified time.Time
}

// Folder opens a folder. The caller closes it.
func (v *Volume) Folder(scope, folder string) (*Folder, error) {
	path, err := FolderPath(scope, folder)
	if err != nil {
		return nil, err
	}
	s, err := v.openScope(path[:32])
	if err != nil {
		return nil, err
	}
	d, err := openDir(s, path[33:], plain)
	if err != nil {
		return nil, errors.Join(classify("open folder", folder, err), s.Close())
	}
	return &Folder{vol: v, dir: d, scope: s, Path: path}, nil
}

// prefixMode returns the mode of the directories between a scope and its folders, which are as
// closed as the scope.
func prefixMode(scope *os.File) (uint32, error) {
	st, err := scope.Stat()
	if err != nil {
		return 0, err
	}
	return uint32(st.Mode().Perm()) & 0o755, nil
}

// CreateFolder creates a folder in an existing scope, or opens it.
func (v *Volume) CreateFolder(scope, folder string) (*Folder, error) {
	path, err := FolderPath(scope, folder)
	if err != nil {
		return nil, err
	}
	s, err := v.openScope(path[:32])
	if err != nil {
		return nil, err
	}
	prefix, err := prefixMode(s)
	if err != nil {
		return nil, errors.Join(classify("create folder", folder, err), s.Close())
	}
	var d *os.File
	for range 16 { // the deletion of another folder may remove a prefix concurrently
		if d, err = mkdirAll(s, path[33:], prefix, plain); !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(classify("create folder", folder, err), s.Close())
	}
	if err := errors.Join(foldergroup.Root(d), s.Sync()); err != nil {
		return nil, errors.Join(classify("create folder", folder, err), s.Close(), d.Close())
	}
	return &Folder{vol: v, dir: d, scope: s, Path: path}, nil
}

// openScope opens the directory of a scope, given in hex.
func (v *Volume) openScope(hex string) (*os.File, error) {
	root, err := v.identity.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return v.scopeIn(context.Background(), root, hex)
}

// Close releases the folder.
func (f *Folder) Close() error { return errors.Join(f.dir.Close(), f.scope.Close()) }

// Usage returns the size of the folder from the product, or from a walk.
func (f *Folder) Usage(ctx context.Context) (*volumepb.TreeUsageReport, error) {
	if f.vol.can(volumepb.Capability_USAGE_FAST) {
		var usage *volumepb.TreeUsageReport
		err := f.vol.call(ctx, func(c *plugin.Client) (err error) {
			usage, err = c.TreeUsage(ctx, &volumepb.TreeRef{Volume: f.vol.cfg.Name, Path: f.Path})
			return err
		})
		if err == nil && usage.Bytes >= 0 && usage.Files >= 0 {
			return usage, nil
		}
		f.vol.log.Debug("the product reports no usage; the proxy counts the files", "usage", usage, "error", err)
	}
	d, err := openDir(f.dir, "", inside)
	if err != nil {
		return nil, classify("open", "", err)
	}
	return plugin.UsageAt(ctx, d)
}

// Open opens a regular file for reading. It rejects links, FIFOs and devices, since opening a
// FIFO or device can block or have effects.
func (f *Folder) Open(path string) (*os.File, error) {
	path, err := Clean(path)
	if err != nil {
		return nil, err
	}
	file, err := openRegular(f.dir, path, unix.O_RDONLY)
	if err != nil {
		return nil, classify("open", path, err)
	}
	return file, nil
}

// OpenToChange opens a regular file for reading and writing.
func (f *Folder) OpenToChange(path string) (*os.File, error) {
	path, err := Clean(path)
	if err != nil {
		return nil, err
	}
	file, err := openRegular(f.dir, path, unix.O_RDWR)
	if err != nil {
		return nil, classify("open", path, err)
	}
	return file, nil
}

func openRegular(dir *os.File, path string, access int) (*os.File, error) {
	// O_NONBLOCK: a FIFO opens at once instead of waiting for a writer. The O_PATH check
	// before it normally prevents even that.
	checked, err := descriptor(dir, path, unix.O_PATH|unix.O_NOFOLLOW, 0, inside)
	if err != nil {
		return nil, err
	}
	err = regular(checked)
	_ = unix.Close(checked)
	if err != nil {
		return nil, err
	}
	file, err := openat2(dir, path, access|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0, inside)
	if err != nil {
		return nil, err
	}
	if err := regular(int(file.Fd())); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func regular(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		return unix.EISDIR
	case unix.S_IFLNK:
		return unix.ELOOP
	}
	return notRegular{}
}

// notRegular reports a FIFO, socket or device.
type notRegular struct{}

func (notRegular) Error() string { return "is neither a file nor a directory" }
func (notRegular) Unwrap() error { return errdefs.ErrInvalidArgument }

// OpenDir opens a directory of the folder, "" for the folder itself.
func (f *Folder) OpenDir(path string) (*os.File, error) {
	path, err := Clean(path)
	if err != nil {
		return nil, err
	}
	d, err := openDir(f.dir, path, inside)
	if err != nil {
		return nil, classify("open directory", path, err)
	}
	return d, nil
}

// Stat describes the entry at a path; for a link, the link itself.
func (f *Folder) Stat(path string) (Entry, error) {
	path, err := Clean(path)
	if err != nil {
		return Entry{}, err
	}
	at, err := openat2(f.dir, path, unix.O_PATH|unix.O_NOFOLLOW, 0, inside)
	if err != nil {
		return Entry{}, classify("stat", path, err)
	}
	defer at.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(at.Fd()), &st); err != nil {
		return Entry{}, classify("stat", path, err)
	}
	return entry(path, &st), nil
}

func entry(path string, st *unix.Stat_t) Entry {
	_, name := split(path)
	return Entry{Name: name, Path: path, Mode: st.Mode, Size: st.Size, Modified: time.Unix(st.Mtim.Unix())}
}

// MakeDirectory creates a directory and its missing parents. It returns an existing directory.
func (f *Folder) MakeDirectory(path string) (Entry, error) {
	path, err := CleanNew(path)
	if err != nil {
		return Entry{}, err
	}
	d, err := mkdirAll(f.dir, path, foldergroup.Dir, inside)
	if errors.Is(err, unix.ENOTDIR) && f.isFile(path) {
		err = unix.EEXIST
	}
	if err != nil {
		return Entry{}, classify("make directory", path, err)
	}
	defer d.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return Entry{}, classify("make directory", path, err)
	}
	return entry(path, &st), nil
}

func (f *Folder) isFile(path string) bool {
	e, err := f.Stat(path)
	return err == nil && e.Mode&unix.S_IFMT != unix.S_IFDIR
}

// parent opens the directory of a path and returns the last name.
func (f *Folder) parent(path string) (*os.File, string, error) {
	dir, name := split(path)
	d, err := followDir(f.dir, dir, inside)
	return d, name, err
}

func rename(from *os.File, fromName string, to *os.File, toName string, overwrite bool) error {
	if overwrite {
		return unix.Renameat(int(from.Fd()), fromName, int(to.Fd()), toName)
	}
	err := unix.Renameat2(int(from.Fd()), fromName, int(to.Fd()), toName, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// NFS cannot rename without replacing, so check first. Without the flag, there is no
	// better way.
	var st unix.Stat_t
	if err := unix.Fstatat(int(to.Fd()), toName, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		return errors.Join(err, unix.EEXIST)
	}
	return unix.Renameat(int(from.Fd()), fromName, int(to.Fd()), toName)
}
