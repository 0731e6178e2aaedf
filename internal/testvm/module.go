package testvm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// modulesDir contains the modules of Debian's user-mode Linux, by release.
const modulesDir = "/usr/lib/uml/modules"

// load loads a module of the running kernel and its dependencies.
func load(name string) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	dir := filepath.Join(modulesDir, unix.ByteSliceToString(u.Release[:]))
	raw, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		path, needs, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.TrimSuffix(filepath.Base(path), ".ko") != name {
			continue
		}
		// modules.dep lists direct dependencies first, so they are loaded in reverse order.
		files := append([]string{path}, strings.Fields(needs)...)
		slices.Reverse(files)
		for _, f := range files {
			if err := insert(filepath.Join(dir, f)); err != nil {
				return fmt.Errorf("module %s: %s: %w", name, filepath.Base(f), err)
			}
		}
		return nil
	}
	return fmt.Errorf("module %s is not in %s", name, dir)
}

func insert(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}
