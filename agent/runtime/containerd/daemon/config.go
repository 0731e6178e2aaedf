// Package daemon is the agent's own containerd: a slim build of its server that
// runs as a separate child process, with every path below one directory, so that
// it never meets a containerd of the host. The agent's containerd runtime starts
// it; berthd's hidden sub-command runs it.
package daemon

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	srvconfig "github.com/containerd/containerd/v2/cmd/containerd/server/config"
	"github.com/containerd/containerd/v2/version"
)

// longestSockets leaves room for what containerd appends to a socket directory: a
// slash and a SHA-256 in hexadecimal, 106 bytes in all. Our own names are shorter.
const longestSockets = 106 - 1 - 64

// Config is one directory that belongs to one containerd. The process that runs
// it and the process that talks to it derive the same paths from it.
type Config struct {
	// Dir holds images, snapshots and state. It must be absolute and on a file
	// system that overlayfs takes as an upper layer.
	Dir string
}

// Address is the unix socket of the gRPC API.
func (c Config) Address() string { return filepath.Join(c.sockets(), "containerd.sock") }

// RuncRoot is where runc keeps its state. It must be passed with every container:
// runc's default is shared by the whole host.
func (c Config) RuncRoot() string { return filepath.Join(c.Dir, "runc") }

// FIFODir is for the named pipes of interactive processes.
func (c Config) FIFODir() string { return filepath.Join(c.Dir, "fifo") }

// sockets is a directory short enough for the kernel's limit on socket names.
func (c Config) sockets() string {
	if dir := filepath.Join(c.Dir, "s"); len(dir) <= longestSockets {
		return dir
	}
	sum := sha256.Sum256([]byte(c.Dir))
	return fmt.Sprintf("/run/berth/%x", sum[:8])
}

// prepare makes the directories that containerd does not make itself.
func (c Config) prepare() error {
	for _, dir := range []string{c.sockets(), c.RuncRoot(), c.FIFODir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make containerd's directories: %w", err)
		}
	}
	return nil
}

// server is containerd's own configuration: nothing is left to a default that
// points to a directory of the host.
func (c Config) server() *srvconfig.Config {
	const shim, grpc, ttrpc = "io.containerd.shim.v1.manager", "io.containerd.server.v1.grpc", "io.containerd.server.v1.ttrpc"
	return &srvconfig.Config{
		Version: version.ConfigVersion,
		Root:    filepath.Join(c.Dir, "root"),
		State:   filepath.Join(c.Dir, "state"),
		RequiredPlugins: []string{
			"io.containerd.runtime.v2.task", "io.containerd.metadata.v1.bolt", shim, grpc, ttrpc,
		},
		Plugins: map[string]any{
			shim:  map[string]any{"socket_dir": c.sockets()},
			grpc:  map[string]any{"address": c.Address()},
			ttrpc: map[string]any{"address": c.Address() + ".ttrpc"},
			// The agent reads cgroups itself.
			"io.containerd.monitor.task.v1.cgroups": map[string]any{"no_prometheus": true},
		},
	}
}
