package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// removeCgroup kills all processes in a kernel's cgroup and removes it from every hierarchy. The
// runtime does so itself, unless it was interrupted while it created the container.
func removeCgroup(ctx context.Context, path string) error {
	for {
		var left []error
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			dirs, err := filepath.Glob(pattern + path)
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				if err := emptyCgroup(dir); err != nil {
					left = append(left, err)
				}
			}
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove cgroup: %w", errors.Join(left...))
		case <-time.After(20 * time.Millisecond): // killed processes take a moment to exit
		}
	}
}

// emptyCgroup kills the processes of a cgroup and removes it, children first.
func emptyCgroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil // it may be removed during the walk
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		text, _ := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		for _, field := range strings.Fields(string(text)) {
			// 0 is a process in another pid namespace. kill(0) would kill our own process group.
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
