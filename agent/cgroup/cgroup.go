// Package cgroup reads the usage of a cgroup from its files, in cgroup v1, v2 and hybrid
// hierarchies. A read takes a few microseconds, while a call to a container's shim wakes two other
// processes.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/runtime"
)

// Root is where the hierarchies are mounted.
const Root = "/sys/fs/cgroup"

// Group is one cgroup. The paths of its files are determined once.
type Group struct {
	// Directories by controller; "" if the host lacks the controller.
	cpu, memory, pids, io place
}

// place is the directory of a controller and its cgroup version.
type place struct {
	dir     string
	unified bool
}

// Find returns the cgroup with a path below the hierarchies in root. It returns NotFound if the
// cgroup does not exist or its processor time is not accounted.
func Find(root, path string) (*Group, error) {
	g := &Group{
		cpu: find(root, path, "cpuacct", "cpu.stat"), memory: find(root, path, "memory", "memory.current"),
		pids: find(root, path, "pids", "pids.current"), io: find(root, path, "blkio", "io.stat"),
	}
	if g.cpu.dir == "" {
		return nil, fmt.Errorf("cgroup %s: %w", path, errdefs.ErrNotFound)
	}
	return g, nil
}

// find prefers the v1 hierarchy of the controller, as the runtime does. file is a file that the
// controller has in v2.
func find(root, path, controller, file string) place {
	if dir := filepath.Join(root, controller, path); exists(dir) {
		return place{dir: dir}
	}
	for _, dir := range []string{filepath.Join(root, path), filepath.Join(root, "unified", path)} {
		if exists(filepath.Join(dir, file)) {
			return place{dir, true}
		}
	}
	return place{}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Stats returns the current usage. It returns NotFound if the cgroup was removed.
func (g *Group) Stats() (runtime.Stats, error) {
	s := runtime.Stats{}
	var err error
	if s.CPU, err = g.used(); err != nil {
		return s, err
	}
	if s.Memory, err = g.working(); err != nil {
		return s, err
	}
	if g.pids.dir != "" {
		if s.Pids, err = number(g.pids.dir, "pids.current"); err != nil {
			return s, err
		}
	}
	s.IORead, s.IOWrite, err = g.transferred()
	return s, err
}

func (g *Group) used() (time.Duration, error) {
	if !g.cpu.unified {
		n, err := number(g.cpu.dir, "cpuacct.usage")
		return time.Duration(n), err
	}
	n, err := field(g.cpu.dir, "cpu.stat", "usage_usec")
	return time.Duration(n) * time.Microsecond, err
}

// working returns the memory in use, without the page cache that the kernel could drop.
func (g *Group) working() (uint64, error) {
	if g.memory.dir == "" {
		return 0, nil
	}
	total, inactive := "memory.current", "inactive_file"
	if !g.memory.unified {
		total, inactive = "memory.usage_in_bytes", "total_inactive_file"
	}
	used, err := number(g.memory.dir, total)
	if err != nil {
		return 0, err
	}
	cache, err := field(g.memory.dir, "memory.stat", inactive)
	return used - min(cache, used), err
}

// transferred returns the sums over all block devices. A host without I/O accounting has no such
// file.
func (g *Group) transferred() (read, written uint64, err error) {
	if g.io.unified {
		text, err := content(g.io.dir, "io.stat")
		for _, word := range strings.Fields(text) {
			name, value, _ := strings.Cut(word, "=")
			n, _ := strconv.ParseUint(value, 10, 64)
			switch name {
			case "rbytes":
				read += n
			case "wbytes":
				written += n
			}
		}
		return read, written, absent(err)
	}
	if g.io.dir == "" {
		return 0, 0, nil
	}
	text, err := content(g.io.dir, "blkio.throttle.io_service_bytes_recursive")
	for line := range strings.Lines(text) {
		words := strings.Fields(line) // 8:0 Read 4096
		if len(words) != 3 {
			continue
		}
		n, _ := strconv.ParseUint(words[2], 10, 64)
		switch words[1] {
		case "Read":
			read += n
		case "Write":
			written += n
		}
	}
	return read, written, absent(err)
}

// absent ignores the error of a missing file.
func absent(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

func content(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %w", err, errdefs.ErrNotFound)
	// Reading an open file of a removed cgroup fails with ENODEV.
	case err != nil && !exists(dir):
		return "", fmt.Errorf("%w: %w", err, errdefs.ErrNotFound)
	}
	return string(text), err
}

func number(dir, name string) (uint64, error) {
	text, err := content(dir, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return n, nil
}

// field reads one value of a file with lines of the form "KEY NUMBER".
func field(dir, name, key string) (uint64, error) {
	text, err := content(dir, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key+" "); ok {
			return strconv.ParseUint(strings.TrimSpace(rest), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s: %w", name, key, errdefs.ErrNotImplemented)
}
