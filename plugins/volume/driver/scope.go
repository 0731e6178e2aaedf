package driver

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Own is the directory below the mount point that is Berth's: the proxy's marker,
// and what a plugin keeps of its scopes. No user's folder is in it.
const Own = ".berth"

var scopeForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsScope reports whether a name is a scope's.
func IsScope(name string) bool { return scopeForm.MatchString(name) }

// openAt opens what is below dir. The kernel refuses every step that leaves it, and
// every symbolic link.
func openAt(dir *os.File, path string, flags int) (*os.File, error) {
	if flags&unix.O_PATH == 0 { // which goes with no other flags
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
		// A rename anywhere raced with the look-up.
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// plain refuses what has a scope's name and is not a directory: a file, or a link that
// a product asked by path might follow.
func (m *Mount) plain(scope string) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(root.Fd()), scope, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return status.Errorf(codes.FailedPrecondition, "scope %s: something that is no directory has its name", scope)
	}
	return nil // an absent one is the volume's to tell of
}

// OpenTree opens a directory below the mount point, a scope's for one; no link is
// followed. NOT_FOUND when there is none, FAILED_PRECONDITION when it is something
// else.
func (m *Mount) OpenTree(path string) (*os.File, error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openAt(root, path, unix.O_RDONLY|unix.O_DIRECTORY)
	return f, Error("", err)
}

// MakeScope makes a scope's directory, or finds it, with the mode 0755 whatever
// the umask.
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

// OwnScope gives a scope's directory away.
func (m *Mount) OwnScope(scope string, uid, gid int) error {
	d, err := m.OpenTree(scope)
	if err != nil {
		return err
	}
	defer d.Close()
	return Error("own scope", d.Chown(uid, gid))
}

// RemoveScope removes a scope's directory: FAILED_PRECONDITION while something is in
// it, a success when there is none.
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

// EmptyScope answers what RemoveScope would, for products that remove a scope with
// all that is in it.
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

// ListScopes lists the directories that are scopes, by name alone.
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

// IsTree reports whether a path is a scope's or below it, and clean.
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
