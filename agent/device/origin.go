package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// origins are the directories of the host that a plugin's edits may bring
// things from: what its roots declare, what is its own, and what the operator
// adds. It is no wall against the plugin, which may do on the host what the agent may,
// but it keeps a mistake, or a device that lies, from handing out the host.
type origins struct {
	nodes    []string // device files
	readOnly []string
	writable []string
}

// systemDirs of a host that is its own driver's root are where drivers are
// installed. The rest, such as /etc and /run, holds secrets and sockets too.
var systemDirs = []string{"/usr", "/lib", "/lib32", "/lib64", "/opt"}

// origins of one allocation's edits.
func (p *plugin) origins(id string) origins {
	r := p.cfg.Roots
	own := []string{p.m.work(p.Key(), id), p.m.state(p.Key())}
	dir := filepath.Dir(p.cfg.Path)
	o := origins{
		nodes:    []string{or(r.GetDev(), "/dev")},
		readOnly: append([]string{or(r.GetSys(), "/sys"), dir, filepath.Join(dir, "../lib")}, r.GetPath()...),
		writable: append(own, or(r.GetDev(), "/dev")), // hugepages lie there
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

// permit checks where edits bring things from. What may be missing and is, is
// left out anyway.
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

// within reports whether a path lies below one of the directories, wherever links
// lead. A path that does not exist is where its name says.
func within(path string, dirs []string) bool {
	real := resolve(path)
	for _, d := range dirs {
		if rest, below := strings.CutPrefix(real, strings.TrimSuffix(resolve(d), "/")+"/"); below && rest != "" {
			return true
		}
	}
	return false
}

// resolve follows links as far as the path exists.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || !os.IsNotExist(err) {
		return real // "" is within nothing
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}
