package volume

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
)

// Clean checks a path below a folder and returns its clean form; "" is the folder itself. It
// rejects paths that leave the folder.
func Clean(path string) (string, error) {
	if path == "" || path == "." {
		return "", nil
	}
	path = strings.TrimSuffix(path, "/")
	if fault := folderpath.Fault(path); fault != "" {
		return "", invalid("path %.80q: %s", path, fault)
	}
	return path, nil
}

// CleanNew is Clean for a path to create. It also rejects the folder itself, names that not
// every client can read, and more levels than archives and copies support. Containers can
// create such paths, but the proxy does not.
func CleanNew(path string) (string, error) {
	path, err := Clean(path)
	if err != nil {
		return "", err
	}
	if fault := folderpath.NewFault(path); fault != "" {
		return "", invalid("path %.80q: %s", path, fault)
	}
	return path, nil
}

// hexID returns a uuid as 32 lower-case hex digits, its spelling on disk.
func hexID(what, id string) (string, error) {
	if len(id) == 36 || len(id) == 32 {
		if u, err := uuid.Parse(id); err == nil {
			return hex.EncodeToString(u[:]), nil
		}
	}
	return "", invalid("%s %q: is not a uuid", what, id)
}

// FolderPath returns the path of a folder below the volume's root. Two levels of prefixes keep
// directories small.
func FolderPath(scope, folder string) (string, error) {
	s, err := hexID("scope", scope)
	if err != nil {
		return "", err
	}
	f, err := hexID("folder", folder)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{s, f[:2], f[2:4], f[4:]}, "/"), nil
}

func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

// Rules for resolving a path below a folder. The kernel rejects every step that leaves the
// folder, by "..", by a symbolic link or by a mount, also when a container changes the tree at
// the same moment. Links that stay inside work.
const (
	beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS
	inside  = beneath | unix.RESOLVE_NO_XDEV
	plain   = beneath | unix.RESOLVE_NO_SYMLINKS // the proxy's own directories contain no links
)

// openat2 opens a path below dir; "" is dir itself.
func openat2(dir *os.File, path string, flags int, mode uint32, resolve uint64) (*os.File, error) {
	fd, err := descriptor(dir, path, flags, mode, resolve)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// descriptor is openat2 for short use. The caller closes it with unix.Close, because an
// os.File costs about as much as opening the file.
func descriptor(dir *os.File, path string, flags int, mode uint32, resolve uint64) (int, error) {
	if path == "" {
		path = "."
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	// The kernel answers EAGAIN when a rename anywhere raced with a ".." step.
	for range 128 {
		fd, err := unix.Openat2(int(dir.Fd()), path, &how)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return -1, err
		}
	}
	return -1, unix.EAGAIN
}

// openDir opens a directory; a link is an error.
func openDir(dir *os.File, path string, resolve uint64) (*os.File, error) {
	return openat2(dir, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0, resolve)
}

// followDir opens a directory, or a link to one inside the folder.
func followDir(dir *os.File, path string, resolve uint64) (*os.File, error) {
	return openat2(dir, path, unix.O_RDONLY|unix.O_DIRECTORY, 0, resolve)
}

// mkdir creates a directory with the mode, independent of the umask, or opens the existing
// one.
func mkdir(dir *os.File, name string, mode uint32, resolve uint64) (*os.File, error) {
	err := unix.Mkdirat(int(dir.Fd()), name, mode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	d, oerr := openDir(dir, name, resolve)
	if oerr != nil {
		return nil, oerr
	}
	if err == nil {
		if err := chmod(d, mode); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// chmod sets the mode of a directory, and keeps the bit that passes its group on.
func chmod(d *os.File, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return err
	}
	return unix.Fchmod(int(d.Fd()), mode|st.Mode&unix.S_ISGID)
}

// mkdirAll creates every missing directory of a path and opens the last.
func mkdirAll(dir *os.File, path string, mode uint32, resolve uint64) (*os.File, error) {
	d, err := followDir(dir, path, resolve)
	if err == nil || !errors.Is(err, unix.ENOENT) {
		return d, err
	}
	up, name := split(path)
	parent, err := mkdirAll(dir, up, mode, resolve)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return mkdir(parent, name, mode, resolve)
}

// classify adds an error class to an operating system error, with a message that reveals no
// path of this machine.
func classify(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("%s %q: %w", doing, path, err)
	}
	var class error = errdefs.ErrInternal
	text := errno.Error()
	switch errno {
	case unix.ENOENT:
		class, text = errdefs.ErrNotFound, "does not exist"
	case unix.ENOTDIR:
		class, text = errdefs.ErrInvalidArgument, "a part of it is not a directory"
	case unix.EISDIR:
		class, text = errdefs.ErrFailedPrecondition, "is a directory"
	case unix.EEXIST:
		class, text = errdefs.ErrAlreadyExists, "exists"
	case unix.ENOTEMPTY:
		class, text = errdefs.ErrFailedPrecondition, "is not empty"
	case unix.ELOOP, unix.EXDEV:
		class, text = errdefs.ErrInvalidArgument, "is a symbolic link or leads out of the folder"
	case unix.EINVAL, unix.ENAMETOOLONG:
		class = errdefs.ErrInvalidArgument
	case unix.EACCES, unix.EPERM:
		class = errdefs.ErrPermissionDenied
	case unix.EROFS:
		class, text = errdefs.ErrFailedPrecondition, "the volume is read-only"
	case unix.ENOSPC, unix.EDQUOT:
		class, text = problem.ErrNoSpace, "no space is left"
	case unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.EAGAIN, unix.ENXIO:
		class = errdefs.ErrUnavailable
	}
	return fmt.Errorf("%s %q: %s: %w", doing, path, text, class)
}
