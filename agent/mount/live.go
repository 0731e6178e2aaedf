package mount

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// Place identifies a mount of a container by its kernel ids instead of its path, because root in
// the container can rename directories and mount others in their place.
type Place struct {
	Target string
	ID     uint64   // of the mount
	Device string   // major:minor
	Below  []uint64 // mounts of the same folder further down that were not read-only from the start
	Gone   bool     `json:",omitempty"`
}

// Change is the new mode of the mount at a target, or its removal.
type Change struct {
	Target   string
	ReadOnly bool
	Gone     bool
}

// Find returns the mounts of a container at the targets. It must be called before the user's
// processes run; pid is the container's first process. It returns InvalidArgument if a target is in
// a system directory because of a symbolic link that Open could not see.
func Find(pid int, targets []string) (found []Place, err error) {
	err = inside(pid, func() error {
		table, err := readMounts(pid)
		if err != nil {
			return err
		}
		for _, target := range targets {
			fd, err := openPlace(target, 0) // symbolic links of the image are followed, as the runtime did
			if err != nil {
				return fmt.Errorf("mount at %s: %w", target, err)
			}
			id, root, err := mountOf(fd)
			unix.Close(fd)
			m, ok := table[id]
			if err == nil && (!ok || !root) {
				err = fmt.Errorf("nothing is mounted there: %w", errdefs.ErrNotFound)
			}
			if r := reservedFor(m.point); err == nil && r != "" {
				err = fmt.Errorf("a symbolic link leads to %s, which belongs to the system: %w", m.point, errdefs.ErrInvalidArgument)
			}
			if err != nil {
				return fmt.Errorf("mount at %s: %w", target, err)
			}
			found = append(found, Place{Target: target, ID: id, Device: m.device})
		}
		for i, p := range found {
			for _, m := range table.below(p, found) {
				if !m.readOnly {
					found[i].Below = append(found[i].Below, m.id)
				}
			}
		}
		return nil
	})
	return found, err
}

// Apply changes mounts of a running container and returns their new places. Changes that were
// applied before are skipped. It returns Unavailable if processes move mounts at the same time or
// do not exit; the former cannot happen while the container is paused. Open files stay open. A
// process that has a directory of a removed folder open is killed, because it could still reach the
// whole folder.
func Apply(pid int, places []Place, changes []Change) ([]Place, error) {
	places = slices.Clone(places)
	err := inside(pid, func() (failed error) {
		for _, c := range changes {
			i := slices.IndexFunc(places, func(p Place) bool { return p.Target == c.Target })
			if i < 0 {
				failed = errors.Join(failed, fmt.Errorf("no folder is mounted at %s: %w", c.Target, errdefs.ErrFailedPrecondition))
				continue
			}
			if err := apply(pid, places, i, c); err != nil {
				failed = errors.Join(failed, fmt.Errorf("change mount at %s: %w", c.Target, err))
			}
		}
		return failed
	})
	return places, err
}

func apply(pid int, places []Place, i int, c Change) error {
	p := &places[i]
	if p.Gone {
		return nil
	}
	table, err := readMounts(pid)
	if err != nil {
		return err
	}
	m, there := table[p.ID]
	if !there || m.device != p.Device { // an agent was killed while removing it
		err := evict(pid, append(slices.Clone(p.Below), p.ID))
		p.Gone = err == nil
		return err
	}
	fd, err := open(m)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch {
	case c.Gone:
		return take(pid, table, places, p, fd)
	case !c.ReadOnly:
		return writable(table, p, fd)
	}
	err = readOnly(table, places, p, fd)
	if errors.Is(err, unix.EBUSY) { // files are open for writing
		return replaceMount(pid, table, places, p, fd)
	}
	return err
}

// readOnly makes a folder's mounts read-only, also for directories that are already open. Other
// folders below are not changed.
func readOnly(table mounts, places []Place, p *Place, fd int) error {
	err := setReadOnly(fd, true)
	for _, m := range table.below(*p, places) {
		err = errors.Join(err, with(m, func(fd int) error { return setReadOnly(fd, true) }))
	}
	return err
}

func writable(table mounts, p *Place, fd int) error {
	err := setReadOnly(fd, false)
	for _, id := range p.Below {
		if m, ok := table[id]; ok {
			err = errors.Join(err, with(m, func(fd int) error { return setReadOnly(fd, false) }))
		}
	}
	return err
}

func setReadOnly(fd int, on bool) error {
	attr := &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if on {
		attr = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr)
}

// take removes a mount and everything mounted below it.
func take(pid int, table mounts, places []Place, p *Place, fd int) error {
	// Files that are already open for writing stay writable.
	if err := readOnly(table, places, p, fd); err != nil && !errors.Is(err, unix.EBUSY) {
		return err
	}
	lost := table.tree(p.ID)
	if err := detach(fd); err != nil {
		return err
	}
	if err := evict(pid, lost); err != nil {
		return err
	}
	for i := range places {
		if slices.Contains(lost, places[i].ID) {
			places[i].Gone = true
		}
	}
	return nil
}

// detach unmounts the open mount, and not another one that was since mounted at its path.
func detach(fd int) error {
	if err := unix.Fchdir(fd); err != nil {
		return err
	}
	defer func() { _ = unix.Chdir("/") }()
	return unix.Unmount(".", unix.MNT_DETACH)
}

// replaceMount replaces a mount by a read-only copy if it cannot be made read-only because files
// are open for writing.
func replaceMount(pid int, table mounts, places []Place, p *Place, fd int) error {
	copied, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("copy mount: %w", err)
	}
	defer unix.Close(copied)
	if err := setReadOnly(copied, true); err != nil {
		return err
	}
	id, _, err := mountOf(copied)
	if err != nil {
		return err
	}
	at, old := table[p.ID].point, table.tree(p.ID)
	if err := detach(fd); err != nil {
		return err
	}
	// The place is empty until the copy is attached: a process that prevents this sees an empty
	// directory.
	err = attach(copied, at)
	if err == nil {
		err = moved(pid, table, places, *p, id, old)
	}
	if err != nil {
		for i := range places {
			places[i].Gone = places[i].Gone || slices.Contains(old, places[i].ID)
		}
		err = errors.Join(err, detach(copied))
	}
	return errors.Join(err, evict(pid, old))
}

func attach(fd int, at string) error {
	point, err := openPlace(at, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	defer unix.Close(point)
	return unix.MoveMount(fd, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// moved records the ids of the copied mounts. Mounts below a mount have the same paths below its
// copy.
func moved(pid int, before mounts, places []Place, p Place, id uint64, old []uint64) error {
	after, err := readMounts(pid)
	if err != nil {
		return err
	}
	now := map[uint64]uint64{}
	for _, o := range old {
		rest := strings.TrimPrefix(before[o].point, before[p.ID].point)
		for _, n := range after.tree(id) {
			if after[n].point == after[id].point+rest {
				now[o] = n
			}
		}
		if now[o] == 0 {
			return fmt.Errorf("a mount at %s is lost", before[o].point)
		}
	}
	for i := range places {
		q := &places[i]
		if n, ok := now[q.ID]; ok {
			q.ID = n
		}
		q.Below = slices.Clone(q.Below)
		for j, b := range q.Below {
			if n, ok := now[b]; ok {
				q.Below[j] = n
			}
		}
	}
	i := slices.IndexFunc(places, func(q Place) bool { return q.ID == id })
	for _, m := range after.below(places[i], places) {
		if err := with(m, func(fd int) error { return setReadOnly(fd, true) }); err != nil {
			return err
		}
	}
	return nil
}

// with opens the root of a mount for f.
func with(m mountEntry, f func(fd int) error) error {
	fd, err := open(m)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// open opens the root of a mount and verifies its id, because root in the container can rename
// directories at the same time.
func open(m mountEntry) (int, error) {
	moved := fmt.Errorf("the mount has moved from %s: %w", m.point, errdefs.ErrUnavailable)
	fd, err := openPlace(m.point, unix.RESOLVE_NO_SYMLINKS)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return -1, moved
	}
	if err != nil {
		return -1, fmt.Errorf("open mount at %s: %w", m.point, err)
	}
	id, root, err := mountOf(fd)
	if err == nil && (id != m.id || !root) {
		err = moved
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openPlace opens a path in the container's mount namespace, which the thread must have entered.
func openPlace(place string, resolve uint64) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path.Clean("/"+place), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | resolve,
	})
}

// mountOf returns the id of the mount that an open file is on, and whether the file is its root.
func mountOf(fd int) (id uint64, root bool, err error) {
	var st unix.Statx_t
	// AT_STATX_DONT_SYNC avoids a request to the server of the volume, which may not respond.
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st); err != nil {
		return 0, false, err
	}
	return st.Mnt_id, st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// inside runs f on a separate thread that has entered the mount namespace of a process.
func inside(pid int, f func() error) error {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("process %d has ended: %w", pid, errdefs.ErrUnavailable)
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not be reused
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot exit and determines /proc/self, so another one is used.
			other := make(chan struct{})
			go func() {
				defer close(other)
				runtime.LockOSThread()
				done <- enter(ns, f)
			}()
			<-other
			runtime.UnlockOSThread()
			return
		}
		done <- enter(ns, f)
	}()
	return <-done
}

// outside runs f on a thread in the host's mount namespace, which alone has the host's /proc.
func outside(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return <-done
}

func enter(ns *os.File, f func() error) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leave the shared working directory: %w", err)
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter mount namespace: %w", err)
	}
	return f()
}
