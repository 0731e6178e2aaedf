package storage

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/berthhq/berth/internal/cluster"
)

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
