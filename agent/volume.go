package agent

import (
	"fmt"
	"log/slog"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/scopemount"
)

// volumes combines the configured paths with the file systems that are mounted below them.
func volumes(cfg Config, log *slog.Logger) (mount.Volumes, error) {
	list := mount.Volumes{}
	for name, path := range cfg.Volumes {
		list[name] = mount.Volume{Path: path, Guard: confine.NewMount(path, log.With("volume", name))}
	}
	for name, rule := range cfg.ScopeMounts {
		v, ok := list[name]
		if !ok {
			return nil, fmt.Errorf("scope mounts are configured for volume %q, which this node does not have: %w", name, errdefs.ErrInvalidArgument)
		}
		if err := rule.Check(); err != nil {
			return nil, fmt.Errorf("scope mounts of volume %q: %w", name, err)
		}
		v.Guard = nil // the directory consists of mounts, which have these options already
		v.Scopes = scopemount.New(scopemount.Config{Dir: v.Path, Rule: rule, Logger: log.With("volume", name)})
		list[name] = v
	}
	return list, nil
}

// confine mounts the present volumes with nosuid and nodev. Others are confined when they are used.
func (a *Agent) confine() {
	for name, v := range a.volumes {
		if err := v.Confine(); err != nil {
			a.log.Warn("volume is not mounted", "volume", name, "error", err)
		}
	}
}
