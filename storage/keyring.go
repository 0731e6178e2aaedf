package storage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/ticket"
)

// keyring collects the ticket keys of all managers that watch the proxy. If the last manager
// disconnects, its keys stay valid until a manager connects again, because transfers must not
// fail while managers restart.
type keyring struct {
	verifier *ticket.Verifier

	mu      sync.Mutex
	holders []*holder
}

// holder is one watching manager.
type holder struct {
	keys [][]byte
	gone bool
}

// empty reports whether no manager has connected yet.
func (k *keyring) empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.holders) == 0
}

func (k *keyring) join(keys [][]byte) (leave func(), err error) {
	if err := new(ticket.Verifier).SetKeys(keys); err != nil {
		return nil, err
	}
	h := &holder{keys: keys}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holders = append(k.holders, h)
	k.update()
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		h.gone = true
		k.update()
	}, nil
}

// update trusts the keys of all connected managers, or of the managers that were connected
// last if none is.
func (k *keyring) update() {
	if slices.ContainsFunc(k.holders, func(h *holder) bool { return !h.gone }) {
		k.holders = slices.DeleteFunc(k.holders, func(h *holder) bool { return h.gone })
	}
	var all [][]byte
	for _, h := range k.holders {
		all = append(all, h.keys...)
	}
	_ = k.verifier.SetKeys(all) // join has validated them
}

// newNode returns the proxy's connection to its managers, or nil if none is configured.
func newNode(cfg Config) (*cluster.Node, error) {
	if len(cfg.Managers) == 0 {
		return nil, nil
	}
	node, err := cluster.NewNode(cluster.NodeConfig{
		Role: cluster.RoleStorage, Name: cfg.Name, Dir: filepath.Join(cfg.Dir, "node"), Managers: cfg.Managers,
		JoinToken: cfg.JoinToken, CAFingerprint: cfg.CAFingerprint, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return node, nil
}

// serveCluster connects to every manager and serves the control calls over these connections.
func (p *Proxy) serveCluster(ctx context.Context) error {
	if err := p.node.Serve(ctx, p.grpc); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}
