// Package wholefile writes files atomically: after a crash, a reader finds the previous or the new
// contents.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file, which is on disk when Write returns. The file mode is 0600. Concurrent
// writers replace each other's files completely.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // already renamed after success
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a new name durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
