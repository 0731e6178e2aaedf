package main

import (
	"path/filepath"

	"github.com/berthhq/berth/internal/confine"
)

// closeData creates the directory of all state, or closes the permissions of one that an
// earlier version left open. The stores run as another user, who can only traverse it.
func closeData(dir string) error {
	if err := confine.Directory(dir, 0o711); err != nil {
		return err
	}
	for _, name := range []string{"volumes", "volumes/local", "agent", "containerd", "storage", "secrets", "registry"} {
		if err := confine.Directory(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}
