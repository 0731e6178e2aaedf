package kernel

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/berthhq/berth/agent/mount"
)

// shareNames writes the names and addresses of a session's kernels on this node into the files of
// each of them. Every kernel calls it after it got its address, so the last call is complete. If
// the session spans several agents, the requests contain all names.
func (m *Manager) shareNames(session string) error {
	m.naming.Lock()
	defer m.naming.Unlock()
	var mates []*Kernel
	for _, k := range m.List() {
		if k.rec.request.SessionId == session && k.rec.request.Network == nil && !k.ended() && k.attachment().Address.IsValid() {
			mates = append(mates, k)
		}
	}
	if len(mates) < 2 {
		return nil
	}
	for _, k := range mates {
		files := k.files()
		for _, other := range mates {
			if other != k {
				files.Peers = append(files.Peers, mount.Peer{Hostname: other.hostname(), Address: other.attachment().Address})
			}
		}
		if err := files.WriteHosts(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("name the kernels of session %s: %w", session, err)
		}
	}
	return nil
}

// hostname returns the requested or the default host name.
func (k *Kernel) hostname() string {
	if name := k.rec.request.Hostname; name != "" {
		return name
	}
	return "main"
}
