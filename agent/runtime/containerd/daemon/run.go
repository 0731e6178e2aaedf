package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/containerd/containerd/v2/cmd/containerd/server"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/log"
)

// Run serves containerd in this process until ctx ends. Containers continue running, and the next
// Run on the same directory recovers them. Errors of plugins are printed to standard error.
func Run(ctx context.Context, cfg Config) error {
	if err := log.SetLevel("error"); err != nil {
		return fmt.Errorf("run containerd: %w", err)
	}
	if err := cfg.prepare(); err != nil {
		return err
	}
	config := cfg.server()
	if err := server.CreateTopLevelDirectories(config); err != nil {
		return fmt.Errorf("run containerd: %w", err)
	}
	if err := clearTempMounts(config.Root); err != nil {
		return err
	}
	s, err := server.New(ctx, config)
	if err != nil {
		return fmt.Errorf("run containerd: %w", err)
	}
	defer s.Stop()
	if err := s.Start(ctx); err != nil {
		return fmt.Errorf("run containerd: %w", err)
	}
	<-ctx.Done()
	return nil
}

// clearTempMounts removes mounts that a killed process left.
func clearTempMounts(root string) error {
	if err := mount.SetTempMountLocation(filepath.Join(root, "tmpmounts")); err != nil {
		return fmt.Errorf("run containerd: %w", err)
	}
	warnings, err := mount.CleanupTempMounts(0)
	for _, w := range warnings {
		log.L.WithError(w).Warn("temporary mount stays")
	}
	if err != nil {
		log.L.WithError(err).Warn("temporary mounts stay")
	}
	return nil
}
