// Package leftover cleans up temporary directories of killed processes: a lock in each directory
// shows that its process lives, and the next process removes directories whose locks are free.
package leftover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// File is the file that Lock creates in the directory.
const File = "lock"

// Lock marks a directory as in use until the returned file is closed or the process ends. It
// returns an error at once if another process has the lock.
func Lock(dir string) (*os.File, error) {
	name := filepath.Join(dir, File)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return f, nil
}

// Sweep calls remove for the directories in the temporary directory whose names begin with prefix
// and whose processes have ended.
func Sweep(prefix string, remove func(dir string)) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		st, err := os.Stat(dir)
		if err != nil || time.Since(st.ModTime()) < time.Minute {
			continue // another process may be about to lock it
		}
		if l, err := Lock(dir); err == nil {
			remove(dir)
			l.Close()
		}
	}
}

// closing limits the wait for users of a mount to close their files.
const closing = 5 * time.Second

// Unmount unmounts a directory; nothing mounted is not an error. It waits for a while for files
// that are still open, and then detaches the mount.
func Unmount(at string) error {
	err := unix.Unmount(at, 0)
	for end := time.Now().Add(closing); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		err = unix.Unmount(at, 0)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // not mounted
		err = unix.Unmount(at, unix.MNT_DETACH)
		if err != nil {
			return fmt.Errorf("unmount %s: %w", at, err)
		}
	}
	return nil
}
