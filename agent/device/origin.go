package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// origins are the host directories that a plugin's edits may refer to: its roots, its own
// directories, and the directories that the operator adds. They are no protection against a
// malicious plugin, which has the agent's permissions on the host, but they keep a bug or a faulty
// device from exposing host files to containers.
type origins struct {
	nodes    []string // device files
	readOnly []string
	writable []string
}

// systemDirs are the directories in which drivers are installed on a host that is its own driver
// root. Others, such as /etc and /run, contain secrets and sockets.
var systemDirs = []string{"/usr", "/lib", "/lib32", "/lib64", "/opt"}

// origins returns the allowed directories for the edits of one allocation.
func (p *plugin) origins(id string) origins {
	r := p.cfg.Roots
	own := []string{p.m.work(p.Key(), id), p.m.state(p.Key())}
	dir := filepath.Dir(p.cfg.Path)
	o := origins{
		nodes:    []string{or(r.GetDev(), "/dev")},
		readOnly: append([]string{or(r.GetSys(), "/sys"), dir, filepath.Join(dir, "../lib")}, r.GetPath()...),
		writable: append(own, or(r.GetDev(), "/dev")), // hugepages are mounted below it
	}
	if driver := or(r.GetDriver(), "/"); driver != "/" {
		o.readOnly = append(o.readOnly, driver)
	} else {
		o.readOnly = append(o.readOnly, systemDirs...)
	}
	o.writable = append(o.writable, p.cfg.Allow.Mounts...)
	return o
}

func or(path, usual string) string {
	if path == "" {
		return usual
	}
	return filepath.Clean(path)
}

// permit checks that edits refer only to allowed directories. Optional paths that do not exist are
// skipped.
func (o origins) permit(e *acceleratorpb.ContainerEdits) error {
	for _, n := range e.DeviceNodes {
		host := n.HostPath
		if host == "" {
			host = n.Path
		}
		if !within(host, o.nodes) && !(n.Optional && missing(host)) {
			return fmt.Errorf("device node %s: not below %s: %w", host, strings.Join(o.nodes, ", "), errdefs.ErrPermissionDenied)
		}
	}
	for _, m := range e.Mounts {
		from := o.writable
		if !m.Writable {
			from = append(from[:len(from):len(from)], o.readOnly...)
		}
		if !within(m.Source, from) && !(m.Optional && missing(m.Source)) {
			how := "read-only"
			if m.Writable {
				how = "writable"
			}
			return fmt.Errorf("%s mount of %s: not below the plugin's roots, and not in its allow-list: %w", how, m.Source, errdefs.ErrPermissionDenied)
		}
	}
	return nil
}

// within reports whether a path is below one of the directories after resolving symbolic links. A
// path that does not exist is compared by its name.
func within(path string, dirs []string) bool {
	real := resolve(path)
	for _, d := range dirs {
		if rest, below := strings.CutPrefix(real, strings.TrimSuffix(resolve(d), "/")+"/"); below && rest != "" {
			return true
		}
	}
	return false
}

// resolve follows symbolic links as far as the path exists.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || !os.IsNotExist(err) {
		return real // "" is not within any directory
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}
