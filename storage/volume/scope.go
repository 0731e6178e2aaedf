package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/scopemount"
	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// CreateScope creates a scope, or returns the existing one.
func (v *Volume) CreateScope(ctx context.Context, scope string, limit *volumepb.Limit) (*volumepb.Scope, error) {
	s, err := v.scope(ctx, scope, func(c *plugin.Client, hex string) (*volumepb.Scope, error) {
		return c.CreateScope(ctx, &volumepb.ScopeRequest{Volume: v.cfg.Name, Scope: hex, Limit: limit})
	})
	if err != nil {
		return nil, err
	}
	// The plugin may have reset the mode of the directory.
	v.mu.Lock()
	delete(v.shut, s.Path)
	v.mu.Unlock()
	if v.mounts != nil {
		return s, nil // the mode is set when it is mounted
	}
	// If the scope is mounted by others, the directory may not exist yet; its mode is then set
	// on first use.
	if dir, err := v.openScope(s.Path); err == nil {
		dir.Close()
	}
	return s, nil
}

// SetScopeLimit replaces a scope's limits; nil removes a limit.
func (v *Volume) SetScopeLimit(ctx context.Context, scope string, limit *volumepb.Limit) (*volumepb.Scope, error) {
	return v.scope(ctx, scope, func(c *plugin.Client, hex string) (*volumepb.Scope, error) {
		return c.SetScopeLimit(ctx, &volumepb.ScopeRequest{Volume: v.cfg.Name, Scope: hex, Limit: limit})
	})
}

// GetScope returns a scope with the product's values.
func (v *Volume) GetScope(ctx context.Context, scope string) (*volumepb.Scope, error) {
	return v.scope(ctx, scope, func(c *plugin.Client, hex string) (*volumepb.Scope, error) {
		return c.GetScope(ctx, &volumepb.ScopeRef{Volume: v.cfg.Name, Scope: hex})
	})
}

// scope performs one scope call, checks the answer and stores it.
func (v *Volume) scope(ctx context.Context, scope string, f func(*plugin.Client, string) (*volumepb.Scope, error)) (*volumepb.Scope, error) {
	hex, err := hexID("scope", scope)
	if err != nil {
		return nil, err
	}
	var out *volumepb.Scope
	err = v.call(ctx, func(c *plugin.Client) (err error) {
		out, err = f(c, hex)
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Path != hex {
		return nil, fmt.Errorf("volume %s: plugin put scope %s at %q: %w", v.cfg.Name, hex, out.Path, errdefs.ErrInternal)
	}
	if min(out.GetUsedBytes(), out.GetUsedInodes(), out.GetLimit().GetBytes(), out.GetLimit().GetInodes()) < 0 {
		return nil, fmt.Errorf("volume %s: plugin reports %v for scope %s: %w", v.cfg.Name, out, hex, errdefs.ErrInternal)
	}
	v.mu.Lock()
	v.limits[hex] = out
	v.mu.Unlock()
	return out, nil
}

// LastScope returns the last answer about a scope, or nil.
func (v *Volume) LastScope(scope string) *volumepb.Scope {
	hex, err := hexID("scope", scope)
	if err != nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.limits[hex]
}

// DeleteScope removes a scope without folders. An absent scope is not an error.
func (v *Volume) DeleteScope(ctx context.Context, scope string) error {
	hex, err := hexID("scope", scope)
	if err != nil {
		return err
	}
	if err := v.sweepScope(ctx, hex); err != nil {
		return err
	}
	err = v.call(ctx, func(c *plugin.Client) error {
		_, err := c.DeleteScope(ctx, &volumepb.ScopeRef{Volume: v.cfg.Name, Scope: hex})
		if err != nil || v.mounts == nil {
			return err
		}
		// The file system had to be mounted to check that it is empty. After unmounting, the
		// product can remove the mount point too.
		if err := v.mounts.Unmount(hex); err != nil {
			return err
		}
		_, err = c.DeleteScope(ctx, &volumepb.ScopeRef{Volume: v.cfg.Name, Scope: hex})
		return err
	})
	if err != nil {
		return err
	}
	v.mu.Lock()
	delete(v.limits, hex)
	delete(v.shut, hex)
	v.mu.Unlock()
	return nil
}

// ours are the directories in a scope that contain no folders.
var ours = []string{stagingDir, deletedDir, arrivingDir}

// sweepScope removes the proxy's own directories from a scope without folders, so that it is
// empty for the product.
func (v *Volume) sweepScope(ctx context.Context, hex string) error {
	s, err := v.openScope(hex)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	var prefixes []string
	err = eachName(s, func(name []byte) {
		if n := string(name); !slices.Contains(ours, n) {
			prefixes = append(prefixes, n)
		}
	})
	if err != nil {
		return classify("delete scope", hex, err)
	}
	for _, p := range prefixes {
		// rmdir removes a prefix only if it is empty.
		if err := rmdirTwice(s, p); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("scope %s contains folders: %w", hex, errdefs.ErrFailedPrecondition)
		}
	}
	for _, own := range ours {
		if err := (&remover{ctx: ctx, resolve: plain, meter: NewMeter()}).tree(s, own); err != nil {
			return classify("delete scope", hex, err)
		}
	}
	return nil
}

func rmdirTwice(s *os.File, prefix string) error {
	d, err := openDir(s, prefix, plain)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, n := range names {
		if err := unix.Unlinkat(int(d.Fd()), n, unix.AT_REMOVEDIR); err != nil {
			return err
		}
	}
	return unix.Unlinkat(int(s.Fd()), prefix, unix.AT_REMOVEDIR)
}

// Enforcement returns how limits are enforced, in terms of the storage contract.
func (v *Volume) Enforcement() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return enforcementName(v.caps.GetEnforcement())
}

func enforcementName(e volumepb.Enforcement) string {
	if e == volumepb.Enforcement_ENFORCEMENT_UNSPECIFIED {
		return "none"
	}
	return strings.ToLower(e.String())
}

// capabilityName returns the name of a capability in the storage contract.
func capabilityName(c volumepb.Capability) string {
	return strings.ReplaceAll(strings.ToLower(c.String()), "_", "-")
}

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
		v.log.Warn("the directory of a scope stays accessible to users of this machine", "scope", hex, "error", err)
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

// reportMounts adds to the state which side mounts the scopes, and the errors of mounts.
func (v *Volume) reportMounts(s *State, caps *volumepb.OpenVolumeResponse) {
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
