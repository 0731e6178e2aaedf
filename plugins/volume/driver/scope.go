package driver

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Own is the directory below the mount point for Berth's own files: the proxy's marker, and the
// plugin's state of scopes. It contains no folders.
const Own = ".berth"

var scopeForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsScope reports whether a name is a valid scope.
func IsScope(name string) bool { return scopeForm.MatchString(name) }

// openAt opens a path below dir. The kernel refuses to leave dir or to follow symbolic links.
func openAt(dir *os.File, path string, flags int) (*os.File, error) {
	if flags&unix.O_PATH == 0 { // O_PATH allows no other flags
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), path, &how)
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		// A concurrent rename caused this error, so the call is repeated.
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// plain returns an error if a scope's path exists but is not a directory, for example a symbolic
// link that a product could follow.
func (m *Mount) plain(scope string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(root.Fd()), scope, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return status.Errorf(codes.FailedPrecondition, "scope %s: its name belongs to an entry that is not a directory", scope)
	}
	return nil // the volume itself reports a missing scope
}

// OpenTree opens a directory below the mount point without following symbolic links. It returns
// NOT_FOUND if nothing exists, and FAILED_PRECONDITION if it is not a directory.
func (m *Mount) OpenTree(path string) (*os.File, error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openAt(root, path, unix.O_RDONLY|unix.O_DIRECTORY)
	return f, Error("", err)
}

// MakeScope creates a scope's directory unless it exists, with mode 0755 regardless of the umask.
func (m *Mount) MakeScope(scope string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	err = unix.Mkdirat(int(root.Fd()), scope, 0o755)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return Error("make scope", err)
	}
	d, err := openAt(root, scope, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return Error("make scope", err)
	}
	defer d.Close()
	return Error("make scope", d.Chmod(0o755))
}

// OwnScope changes the owner of a scope's directory.
func (m *Mount) OwnScope(scope string, uid, gid int) error {
	d, err := m.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	return Error("own scope", d.Chown(uid, gid))
}

// RemoveScope removes a scope's directory. It returns FAILED_PRECONDITION if it is not empty, and
// nil if it does not exist.
func (m *Mount) RemoveScope(scope string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	err = unix.Unlinkat(int(root.Fd()), scope, unix.AT_REMOVEDIR)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return status.Errorf(codes.FailedPrecondition, "scope %s is not empty", scope)
	}
	return Error("remove scope", err)
}

// EmptyScope returns the error that RemoveScope would return, for products that remove a scope with
// its contents.
func (m *Mount) EmptyScope(scope string) error {
	d, err := m.OpenTree(scope)
	if is(err, codes.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(1)
	if len(names) > 0 {
		return status.Errorf(codes.FailedPrecondition, "scope %s is not empty", scope)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return Error("look into scope", err)
}

// ListScopes returns the directories with names of scopes, without usage.
func (m *Mount) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	return func(yield func(*pb.Scope, error) bool) {
		root, err := m.Root()
		if err != nil {
			yield(nil, err)
			return
		}
		defer root.Close()
		for ctx.Err() == nil {
			entries, err := root.ReadDir(256)
			for _, e := range entries {
				if IsScope(e.Name()) && e.IsDir() && !yield(&pb.Scope{Scope: e.Name()}, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, Error("list scopes", err))
				return
			}
		}
		yield(nil, ctx.Err())
	}
}

// IsTree reports whether a path is clean and a scope or below one.
func IsTree(path string) bool {
	if strings.ContainsRune(path, 0) || len(path) >= unix.PathMax {
		return false
	}
	for i, part := range strings.Split(path, "/") {
		if i == 0 && !IsScope(part) || part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// making contains a marker for each scope whose creation has started but not ended. A plugin that
// was killed in between completes the creation because of the marker.
const making = Own + "/making"

// begin creates a marker. If this process cannot write to the top of the volume, there is no
// marker, and only the product knows how far the creation got.
func (m *Mount) begin(scope string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := makeAt(root, making)
	if err == nil {
		defer d.Close()
		var f *os.File
		if f, err = create(d, scope); err == nil {
			err = f.Close()
		}
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return nil
	}
	return Error("mark scope", err)
}

func (m *Mount) unfinished(scope string) bool {
	root, err := m.Root()
	if err != nil {
		return false
	}
	defer root.Close()
	f, err := openAt(root, path.Join(making, scope), unix.O_PATH)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// finish removes the marker. A marker that remains only causes a repeated creation.
func (m *Mount) finish(scope string) {
	root, err := m.Root()
	if err != nil {
		return
	}
	defer root.Close()
	if d, err := openAt(root, making, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
		_ = unix.Unlinkat(int(d.Fd()), scope, 0)
		_ = d.Close()
	}
}

// makeAt creates the directories of a path below dir, for the plugin only, and opens the last one.
func makeAt(dir *os.File, name string) (*os.File, error) {
	d, err := openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if !errors.Is(err, unix.ENOENT) {
		return d, err
	}
	parent := dir
	if up := path.Dir(name); up != "." {
		if parent, err = makeAt(dir, up); err != nil {
			return nil, err
		}
		defer parent.Close()
	}
	base := path.Base(name)
	if err := unix.Mkdirat(int(parent.Fd()), base, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return openAt(parent, base, unix.O_RDONLY|unix.O_DIRECTORY)
}

// create opens a new or truncated file of the plugin.
func create(d *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(d.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
