package scopemount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mounted returns the scopes that are mounted, by this or by other processes.
func (m *Mounts) Mounted() ([]string, error) {
	root := m.root()
	list, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		dir, name := filepath.Split(i.Mountpoint)
		return filepath.Clean(dir) != root || !scopeForm.MatchString(name), false
	})
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	var names []string
	for _, i := range list {
		names = append(names, filepath.Base(i.Mountpoint))
	}
	return names, nil
}

// Run unmounts scopes that have not been used for a while, until the context ends. Mounts stay
// after its end, because sessions and proxies outlive an agent's restart.
func (m *Mounts) Run(ctx context.Context) {
	ticks := time.NewTicker(min(sweepEvery, m.cfg.Idle))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if err := m.sweep(); err != nil {
			m.cfg.Logger.Warn("mounts of scopes", "error", err)
		}
	}
}

func (m *Mounts) sweep() error {
	names, err := m.Mounted()
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for _, name := range names {
		here[name] = true
		if m.idle(name) {
			if err := m.Unmount(name); err != nil && !errors.Is(err, unix.EBUSY) {
				return err
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range m.scopes {
		if !here[name] && time.Since(s.used) >= m.cfg.Idle {
			delete(m.scopes, name)
		}
	}
	return nil
}

// idle reports whether a scope has not been used for long. A mount of another process, or of an
// earlier life of this one, counts as used when it is first seen.
func (m *Mounts) idle(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.scopes[name]; s != nil {
		return time.Since(s.used) >= m.cfg.Idle
	}
	m.scopes[name] = &scope{used: time.Now()}
	return false
}

// Unmount unmounts a scope if the mount matches the rule and no process has a file open there;
// otherwise it returns EBUSY. A container that has mounted a folder of the scope keeps that mount.
func (m *Mounts) Unmount(name string) error {
	info, err := m.at(name)
	if err != nil || info == nil {
		return err
	}
	if m.mine(info, name) != nil {
		return nil // no matter who mounted it
	}
	if err := unix.Unmount(m.point(name), unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount scope %s: %w", name, err)
	}
	m.cfg.Logger.Info("scope unmounted", "scope", name)
	_ = os.Remove(m.point(name)) // it is created again at the next mount; the product may have made it immutable
	return nil
}
