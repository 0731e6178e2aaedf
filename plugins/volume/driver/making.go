package driver

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

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
