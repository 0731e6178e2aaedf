// Package wholefile writes files that are there in full or not at all: after a crash a
// reader finds what was there before or what was written.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts data in the place of a file, and it is on disk when Write returns. Only the
// process's own user may read it. Who writes at the same time replaces all of it.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a new name outlive a crash, too.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
