package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/containerd/errdefs"
)

// RoomPath is the path of its room for a child.
const RoomPath = "/proc/self/fd/3"

// longestSocket is the longest path in sockaddr_un, without the final zero byte.
const longestSocket = 107

// Room is a directory of one child, which runs as an unprivileged user if this process is root. The
// child gets the directory as an open file, so it needs no permission on the parent directories:
// the data directory can be below /root.
type Room struct {
	path string
	uid  uint32
	gid  uint32
	name string
	us   string
	dir  *os.File
}

// OpenRoom creates the directory if it is missing, and gives it to the first of the accounts that
// exists. Without root, or without accounts, the owner does not change.
func OpenRoom(path string, accounts ...string) (*Room, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open room: %w", err)
	}
	r := &Room{path: path}
	if err := r.account(accounts); err != nil {
		return nil, fmt.Errorf("open room %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open room: %w", err)
	}
	if err := r.Own(path); err != nil {
		return nil, fmt.Errorf("open room: %w", err)
	}
	if r.dir, err = os.Open(path); err != nil {
		return nil, fmt.Errorf("open room: %w", err)
	}
	return r, nil
}

// account returns the user of the child.
func (r *Room) account(names []string) error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	r.us = me.Username
	if os.Geteuid() != 0 || len(names) == 0 {
		r.uid, r.gid, r.name = uint32(os.Geteuid()), uint32(os.Getegid()), me.Username
		return nil
	}
	for _, n := range names {
		u, err := user.Lookup(n)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return err
		}
		r.uid, r.gid, r.name = uint32(uid), uint32(gid), n
		return nil
	}
	return fmt.Errorf("none of the users %q exists (run make setup): %w", names, errdefs.ErrFailedPrecondition)
}

// Path returns the path of the directory outside of the child.
func (r *Room) Path() string { return r.path }

// Account returns the name of the child's user.
func (r *Room) Account() string { return r.name }

// Us returns the name of the user of this process.
func (r *Room) Us() string { return r.us }

// Socket returns the address of a unix socket that the child binds in its room. A path that is too
// long for the kernel is replaced by one through an open file of this process.
func (r *Room) Socket(name string) string {
	if p := filepath.Join(r.path, name); len(p) <= longestSocket {
		return p
	}
	return fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), r.dir.Fd(), name)
}

// Own makes the child the owner of a file or directory below the room.
func (r *Room) Own(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(r.uid), int(r.gid))
}

// Enter makes cmd run as the room's user with the room as RoomPath. It must be called before other
// open files are added. The caller (or StartChild) closes the file that it adds after the command
// has started.
func (r *Room) Enter(cmd *exec.Cmd) error {
	if len(cmd.ExtraFiles) > 0 {
		return fmt.Errorf("enter room %s: command has open files already: %w", r.path, errdefs.ErrFailedPrecondition)
	}
	f, err := os.Open(r.path)
	if err != nil {
		return fmt.Errorf("enter room: %w", err)
	}
	cmd.ExtraFiles = []*os.File{f}
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: r.uid, Gid: r.gid}
	}
	return nil
}

// Close releases the room; the directory stays.
func (r *Room) Close() error {
	if err := r.dir.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
