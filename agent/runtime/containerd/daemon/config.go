// Package daemon runs the agent's own containerd: a slim build of its server in a separate child
// process. All its paths are below one directory, so it does not interfere with a containerd of the
// host. The agent's containerd runtime starts it through a hidden sub-command of berthd.
package daemon

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	srvconfig "github.com/containerd/containerd/v2/cmd/containerd/server/config"
	"github.com/containerd/containerd/v2/version"
)

// longestSockets leaves room for the part that containerd appends to a socket directory, a slash
// and a SHA-256 in hexadecimal; the limit is 106 bytes in all. Names of our own sockets are
// shorter.
const longestSockets = 106 - 1 - 64

// Config describes the directory of one containerd. The server and its clients derive the same
// paths from it.
type Config struct {
	// Dir contains images, snapshots and state. It must be absolute and on a file system that
	// overlayfs supports as an upper layer.
	Dir string
}

// Address returns the unix socket of the gRPC API.
func (c Config) Address() string { return filepath.Join(c.sockets(), "containerd.sock") }

// RuncRoot returns runc's state directory. It must be passed with every container, because runc's
// default is shared by the whole host.
func (c Config) RuncRoot() string { return filepath.Join(c.Dir, "runc") }

// FIFODir returns the directory of the named pipes of interactive processes.
func (c Config) FIFODir() string { return filepath.Join(c.Dir, "fifo") }

// sockets returns a directory whose path is short enough for the kernel's limit on socket names.
func (c Config) sockets() string {
	if dir := filepath.Join(c.Dir, "s"); len(dir) <= longestSockets {
		return dir
	}
	sum := sha256.Sum256([]byte(c.Dir))
	return fmt.Sprintf("/run/berth/%x", sum[:8])
}

// prepare creates the directories that containerd does not create itself.
func (c Config) prepare() error {
	for _, dir := range []string{c.sockets(), c.RuncRoot(), c.FIFODir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make containerd's directories: %w", err)
		}
	}
	return nil
}

// server returns containerd's configuration. It sets every option whose default refers to a
// directory of the host.
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
			// The agent reads cgroups itself, so containerd need not.
			"io.containerd.monitor.task.v1.cgroups": map[string]any{"no_prometheus": true},
		},
	}
}
