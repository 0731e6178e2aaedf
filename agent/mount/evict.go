package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

const (
	// passes limits the number of scans for processes that use a mount. A process may have passed
	// an open file to another one before it was killed.
	passes = 20
	// endsWithin limits the wait for the exit of a killed process.
	endsWithin = 2 * time.Second
)

// evict kills the processes of a container that have a directory of one of the mounts open, as
// working directory, root or file descriptor.
func evict(pid int, mounts []uint64) error {
	return outside(func() error {
		for range passes {
			n, err := killHolders(pid, mounts)
			if err != nil || n == 0 {
				return err
			}
		}
		return fmt.Errorf("processes keep its directories open: %w", errdefs.ErrUnavailable)
	})
}

// killHolders scans once and returns the number of killed processes.
func killHolders(pid int, mounts []uint64) (int, error) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // the container has ended
	}
	if err != nil {
		return 0, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range all {
		one, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PidfdOpen(one, 0) // from here on the pid cannot be reused
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		its, err := os.Readlink(dir + "/ns/mnt")
		holder := err == nil && its == space && holds(dir, mounts)
		if err = nil; holder {
			n++
			err = kill(fd)
		}
		unix.Close(fd)
		if err != nil {
			return n, fmt.Errorf("end process %d: %w", one, err)
		}
	}
	return n, nil
}

// holds reports whether a process has a directory of one of the mounts open. Threads may have their
// own working directories and file descriptors.
func holds(process string, mounts []uint64) bool {
	tasks, _ := filepath.Glob(process + "/task/*")
	for _, task := range tasks {
		links := []string{task + "/cwd", task + "/root"}
		open, _ := os.ReadDir(task + "/fd")
		for _, f := range open {
			links = append(links, task+"/fd/"+f.Name())
		}
		for _, link := range links {
			var st unix.Statx_t
			err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_MNT_ID, &st)
			if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && slices.Contains(mounts, st.Mnt_id) {
				return true
			}
		}
	}
	return false
}

func kill(pidfd int) error {
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	ended := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for until := time.Now().Add(endsWithin); ; {
		n, err := unix.Poll(ended, max(0, int(time.Until(until).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("it has not ended: %w", errdefs.ErrUnavailable)
		default:
			return nil
		}
	}
}
