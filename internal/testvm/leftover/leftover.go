// Package leftover is about temporary directories of processes that may be killed:
// a lock in each says that its process lives, and the next process takes away what
// those before have left.
package leftover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// File is what Lock makes in the directory.
const File = "lock"

// Lock marks a directory as in use until the file is closed, by the end of the
// process at the latest. It fails at once when another process has it.
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

// Sweep hands to remove the directories below the temporary one whose names begin
// with prefix and whose processes are gone.
func Sweep(prefix string, remove func(dir string)) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		st, err := os.Stat(dir)
		if err != nil || time.Since(st.ModTime()) < time.Minute {
			continue // it may be about to be locked
		}
		if l, err := Lock(dir); err == nil {
			remove(dir)
			l.Close()
		}
	}
}

// closing is what users of a mount have to close their files.
const closing = 5 * time.Second

// Unmount takes away what is mounted in such a directory; nothing is a success. It
// waits a while for files that are still open, and then lets the mount go from
// its name alone.
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
