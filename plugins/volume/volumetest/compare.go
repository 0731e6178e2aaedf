package volumetest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// alike compares two trees and returns the differences as an error.
func alike(one, two string) error {
	a, err := snapshot(one)
	if err != nil {
		return err
	}
	z, err := snapshot(two)
	if err != nil {
		return err
	}
	for name, v := range a {
		if z[name] != v {
			return fmt.Errorf("%q is %q and in the copy %q", name, v, z[name])
		}
	}
	if len(a) != len(z) {
		return fmt.Errorf("%d entries, %d in the copy", len(a), len(z))
	}
	return nil
}

// snapshot returns the type, mode and content of each entry.
func snapshot(root string) (map[string]string, error) {
	out := map[string]string{}
	return out, filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		out[rel] = info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(p)
			out[rel] += " " + string(raw)
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			out[rel] += " " + to
			return err
		}
		return nil
	})
}
