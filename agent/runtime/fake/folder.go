package fake

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runtime"
)

// Folders returns the mode of each mounted folder of a kernel's container, ro or rw, by target.
// Removed mounts are missing.
func (h *Host) Folders(kernel string) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.containers {
		if c.labels[runtime.LabelKernel] == kernel {
			c.mu.Lock()
			defer c.mu.Unlock()
			return maps.Clone(c.folders)
		}
	}
	return nil
}

func (c *container) mountFolders() {
	c.folders = map[string]string{}
	for _, m := range c.spec.Mounts {
		if slices.Contains(c.spec.Folders, m.Destination) {
			c.folders[m.Destination] = access(slices.Contains(m.Options, "ro"))
		}
	}
}

func access(readOnly bool) string {
	if readOnly {
		return "ro"
	}
	return "rw"
}

// Remount implements runtime.Container.
func (c *container) Remount(_ context.Context, changes []mount.Change) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed {
		return nil
	}
	for _, change := range changes {
		if !slices.Contains(c.spec.Folders, change.Target) {
			return fmt.Errorf("no folder is mounted at %s: %w", change.Target, errdefs.ErrFailedPrecondition)
		}
		_, there := c.folders[change.Target]
		switch {
		case change.Gone:
			// Mounts below it are removed with it.
			maps.DeleteFunc(c.folders, func(t, _ string) bool { return t == change.Target || strings.HasPrefix(t, change.Target+"/") })
		case there:
			c.folders[change.Target] = access(change.ReadOnly)
		}
	}
	return nil
}

// touch simulates programs that read and write files of folders.
func (c *container) touch(verb []string, out io.Writer) (code int, ok bool) {
	if len(verb) < 2 {
		return 0, false
	}
	how := ""
	for target, one := range c.folders {
		if strings.HasPrefix(verb[1], target+"/") {
			how = one
		}
	}
	if how == "" && c.file(verb, out) {
		return 0, true
	}
	refused := verb[0] == "write" && how == "ro" || verb[0] == "cat" && how == ""
	if refused {
		return 1, true
	}
	return 0, verb[0] == "write" || verb[0] == "cat"
}
