// Package confine prevents files that containers write from affecting the host. Root in a
// container is root of the host, so a set-uid program in a folder would run as root there:
// directories above folders are closed to everyone else, and volumes are mounted with nosuid
// and nodev. Agents, storage proxies and berthd import it.
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Directory creates a directory with a mode, or removes further permissions from an existing
// one.
func Directory(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return Limit(d, mode)
}

// Limit removes the permissions beyond a mode from an open directory.
func Limit(dir *os.File, mode fs.FileMode) error {
	st, err := dir.Stat()
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s: %w", dir.Name(), unix.ENOTDIR)
	}
	if now := st.Mode().Perm(); now&^mode != 0 {
		return dir.Chmod(st.Mode()&^fs.ModePerm | now&mode)
	}
	return nil
}

// restricted are the attributes of a volume's mount.
var restricted = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}

// Restrict sets nosuid and nodev on the mount whose root is open. It returns EINVAL if the
// file is not the root of a mount.
func Restrict(root *os.File) error {
	return unix.MountSetattr(int(root.Fd()), "", unix.AT_EMPTY_PATH, &restricted)
}

// MountID returns the id of an open file's mount, or 0 if the kernel does not report it. Since
// Linux 6.8, the id is unique and never reused.
func MountID(f *os.File) (uint64, error) {
	const unique = 0x4000 // STATX_MNT_ID_UNIQUE
	return mountID(f, unix.STATX_MNT_ID|unique)
}

// tableID returns the id of a file's mount in /proc/self/mountinfo.
func tableID(f *os.File) (uint64, error) { return mountID(f, unix.STATX_MNT_ID) }

func mountID(f *os.File, mask int) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, mask, &st); err != nil {
		return 0, fmt.Errorf("mount of %s: %w", f.Name(), err)
	}
	return st.Mnt_id, nil
}

// Mount is the directory of one volume, whatever is mounted there. Several processes can use
// one directory. NewMount creates one.
type Mount struct {
	path string
	log  *slog.Logger

	mu    sync.Mutex
	seen  uint64 // the mount that Apply has checked last
	bound uint64 // the mount that Apply, or an earlier killed process, created
}

// NewMount returns the mount at a path.
func NewMount(path string, log *slog.Logger) *Mount { return &Mount{path: path, log: log} }

// Apply restricts the mount of the volume's open root. A plain directory is bind-mounted on
// itself for that. It returns the root to use, which it opens again if a new mount covers the
// old one. If it fails, the caller keeps root.
func (m *Mount) Apply(root *os.File) (*os.File, error) {
	id, err := MountID(root)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != 0 && id == m.seen {
		return root, nil
	}
	covered, err := m.apply(root)
	if err != nil {
		m.seen = id
		m.log.Warn("a set-uid program in a folder would run with the permissions of its owner on this machine: mount the volume with nosuid,nodev", "path", m.path, "error", err)
		return root, nil
	}
	if m.seen, err = MountID(covered); err != nil {
		return nil, err
	}
	if bound, err := boundOnItself(covered); err == nil && bound {
		m.bound = m.seen // by this process, or by one that was killed
	}
	if covered != root {
		root.Close()
	}
	return covered, nil
}

func (m *Mount) apply(root *os.File) (*os.File, error) {
	err := Restrict(root)
	if !errors.Is(err, unix.EINVAL) {
		return root, err
	}
	// Another process that shares the directory waits here, and then finds the mount.
	lock, err := m.open()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_EX) // file servers may not support locks on directories
	covered, err := m.open()
	if err != nil {
		return nil, err
	}
	if err = Restrict(covered); err == nil {
		return covered, nil
	}
	covered.Close()
	if !errors.Is(err, unix.EINVAL) {
		return nil, err
	}
	return m.bind(root)
}

// bind mounts a plain directory on itself, unless that would hide a mount below it.
func (m *Mount) bind(root *os.File) (covered *os.File, err error) {
	real, err := filepath.EvalSymlinks(m.path)
	if err != nil {
		return nil, err
	}
	below, err := mountinfo.GetMounts(mountinfo.PrefixFilter(real))
	if err != nil {
		return nil, fmt.Errorf("mounts below %s: %w", m.path, err)
	}
	if len(below) > 0 {
		return nil, fmt.Errorf("%s cannot be bound on itself: %s is mounted below", m.path, below[0].Mountpoint)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", root.Fd()), m.path, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("bind %s on itself: %w", m.path, err)
	}
	if covered, err = m.open(); err == nil {
		err = Restrict(covered)
	}
	if err == nil {
		return covered, nil
	}
	if covered != nil {
		covered.Close()
	}
	return nil, errors.Join(err, unix.Unmount(m.path, unix.MNT_DETACH))
}

// boundOnItself reports whether the mount of an open file shows the directory that it covers.
func boundOnItself(f *os.File) (bool, error) {
	id, err := tableID(f)
	if err != nil {
		return false, err
	}
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return false, err
	}
	byID := map[int]*mountinfo.Info{}
	for _, i := range all {
		byID[i.ID] = i
	}
	i := byID[int(id)]
	if i == nil || byID[i.Parent] == nil {
		return false, nil
	}
	below := byID[i.Parent]
	rel, err := filepath.Rel(below.Mountpoint, i.Mountpoint)
	if err != nil {
		return false, err
	}
	return i.Major == below.Major && i.Minor == below.Minor && i.Root == filepath.Join(below.Root, rel), nil
}

func (m *Mount) open() (*os.File, error) {
	fd, err := unix.Open(m.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", m.path, err)
	}
	return os.NewFile(uintptr(fd), m.path), nil
}

const (
	// releaseTries and releasePause limit how long Release waits for the last files to be closed.
	releaseTries = 20
	releasePause = 50 * time.Millisecond
)

// Release unmounts the directory's mount on itself, unless it stays in use.
func (m *Mount) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bound == 0 {
		return
	}
	top, err := m.open()
	if err != nil {
		return
	}
	id, err := MountID(top)
	top.Close()
	if err != nil || id != m.bound {
		return
	}
	for try := 1; ; try++ {
		if err = unix.Unmount(m.path, 0); !errors.Is(err, unix.EBUSY) || try == releaseTries {
			break
		}
		time.Sleep(releasePause)
	}
	if err != nil {
		m.log.Info("the volume stays bound on itself", "path", m.path, "error", err)
	}
	m.bound, m.seen = 0, 0
}
