package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/scopemount"
	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// mountScopes prepares the mounts of the volume's scopes if the configuration has a rule for
// them. The mounts that the plugin requests must match the rule.
func (v *Volume) mountScopes() {
	if v.cfg.ScopeMount == nil {
		return
	}
	v.mounts = scopemount.New(scopemount.Config{Dir: v.cfg.MountPath, Rule: *v.cfg.ScopeMount, Plan: v.plan, Logger: v.log})
}

func (v *Volume) plan(ctx context.Context, hex string) (scopemount.Spec, error) {
	var plan *volumepb.MountSpec
	err := v.call(ctx, func(c *plugin.Client) (err error) {
		if !v.can(volumepb.Capability_PER_SCOPE_MOUNT) {
			return fmt.Errorf("scope_mount is configured, and the plugin has no mounts for scopes: %w", errdefs.ErrFailedPrecondition)
		}
		plan, err = c.MountPlan(ctx, &volumepb.ScopeRef{Volume: v.cfg.Name, Scope: hex})
		return err
	})
	return scopemount.Spec{Type: plan.GetFsType(), Source: plan.GetSource(), Options: plan.GetOptions()}, err
}

// scopeIn opens the directory of a scope below the volume's root, and mounts it if it is a
// file system of its own.
func (v *Volume) scopeIn(ctx context.Context, root *os.File, hex string) (*os.File, error) {
	if v.mounts != nil {
		s, err := v.mounts.Open(ctx, hex)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.cfg.Name, err)
		}
		v.shutScope(s, hex)
		return s, nil
	}
	s, err := openDir(root, hex, plain)
	if err != nil {
		return nil, classify("open scope", hex, err)
	}
	v.shutScope(s, hex)
	return s, nil
}

// shutScope closes the directory of a scope to everyone but root, and disables set-uid and
// device files if another process has mounted the scope: files in folders come from
// containers, whose users can be root. A directory that root does not own stays open: its
// server maps root to another user, so agents need the permissions of others, and containers
// cannot create files as root.
func (v *Volume) shutScope(s *os.File, hex string) {
	v.mu.Lock()
	done := v.shut[hex]
	v.shut[hex] = true
	v.mu.Unlock()
	if done || os.Geteuid() != 0 {
		return
	}
	var st unix.Stat_t
	err := unix.Fstat(int(s.Fd()), &st)
	if err == nil && st.Uid == 0 {
		err = confine.Limit(s, closed)
	}
	if rerr := confine.Restrict(s); !errors.Is(rerr, unix.EINVAL) { // EINVAL: it is not a mount point
		err = errors.Join(err, rerr)
	}
	if err != nil {
		v.log.Warn("a scope's directory stays open to users of this machine", "scope", hex, "error", err)
	}
}

// shutScopes closes the directories of all scopes of the volume.
func (v *Volume) shutScopes() error {
	names, err := v.Scopes()
	for _, hex := range names {
		s, serr := v.openScope(hex)
		if serr != nil {
			err = errors.Join(err, serr)
			continue
		}
		s.Close()
	}
	return err
}

// eachMounted mounts every scope and calls f for it. The list of scopes comes from the
// product, because the volume's root does not have it.
func (v *Volume) eachMounted(ctx context.Context, root *os.File, f func(s *os.File, hex string) error) error {
	var all []string
	err := v.EachScope(ctx, func(s *volumepb.Scope) error {
		all = append(all, s.Scope)
		return nil
	})
	for _, hex := range all {
		if err != nil {
			return err
		}
		var s *os.File
		if s, err = v.scopeIn(ctx, root, hex); err == nil {
			err = errors.Join(f(s, hex), s.Close())
		} else if errdefs.IsNotFound(err) { // deleted in the meantime
			err = nil
		}
	}
	return err
}

// tellMounts adds to the state who mounts the scopes, and the errors of mounts.
func (v *Volume) tellMounts(s *State, caps *volumepb.OpenVolumeResponse) {
	able := has(caps, volumepb.Capability_PER_SCOPE_MOUNT)
	if v.mounts == nil && !able {
		return
	}
	who := "outside of Berth"
	if v.mounts != nil {
		who = "by the proxy"
	}
	s.Details = maps.Clone(s.Details)
	if s.Details == nil {
		s.Details = map[string]string{}
	}
	s.Details["scope_mounts"] = who
	if v.mounts == nil || s.Health != volumepb.HealthReport_HEALTHY {
		return
	}
	if err := v.mounts.Failing(); err != nil {
		s.Health, s.Message = volumepb.HealthReport_DEGRADED, err.Error()
	} else if !able {
		s.Health, s.Message = volumepb.HealthReport_DEGRADED, "scope_mount is configured, and the plugin has no mounts for scopes"
	}
}
