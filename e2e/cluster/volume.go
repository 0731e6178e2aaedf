package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Volume is a volume that all storage proxies of a platform serve.
type Volume struct {
	Name, Plugin string
	// Size is the size of a file system in memory; "" if From is another directory.
	Size, From string
	Options    string // YAML on one line
}

// mountPoints is the directory of mount points, which the cleaner unmounts.
func (p *Platform) mountPoints() string { return filepath.Join(p.dir, "mounts") }

// served returns the directory of a volume's files outside of the proxies' mount, like the file
// system of a file server.
func (s *Spread) served(v Volume) string {
	if v.From != "" {
		return v.From
	}
	return filepath.Join(s.mountPoints(), "served-"+v.Name)
}

// Mount returns the path of a volume at the proxies.
func (s *Spread) Mount(name string) string { return filepath.Join(s.mountPoints(), name) }

// openVolumes mounts the volumes.
func (s *Spread) openVolumes(context.Context) error {
	for _, v := range s.volumes {
		if v.From == "" {
			if err := os.MkdirAll(s.served(v), 0o755); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", s.served(v), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size="+v.Size); err != nil {
				return fmt.Errorf("mount %s: %w", s.served(v), err)
			}
		}
		if err := s.Remount(v.Name); err != nil {
			return err
		}
	}
	return nil
}

// AgentDisk returns the path at which the file system of the agent's directory is mounted.
func (p *Platform) AgentDisk() string { return filepath.Join(p.mountPoints(), "agent") }

// mountAgent mounts a file system for the agent's directory.
func (p *Platform) mountAgent(size string) error {
	for _, dir := range []string{p.AgentDisk(), p.data} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", p.AgentDisk(), "tmpfs", 0, "mode=700,nr_inodes=20k,size="+size); err != nil {
		return fmt.Errorf("mount %s: %w", p.AgentDisk(), err)
	}
	return os.Symlink(p.AgentDisk(), filepath.Join(p.data, "agent"))
}

// Remount mounts a volume again at its path at the proxies.
func (s *Spread) Remount(name string) error {
	for _, v := range s.volumes {
		if v.Name != name {
			continue
		}
		if err := os.MkdirAll(s.Mount(name), 0o755); err != nil {
			return err
		}
		if err := unix.Mount(s.served(v), s.Mount(name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", s.Mount(name), err)
		}
		return nil
	}
	return fmt.Errorf("no volume %s", name)
}

// Unmount unmounts a volume from its path at the proxies, like umount -l.
func (s *Spread) Unmount(name string) error {
	if err := unix.Unmount(s.Mount(name), unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", s.Mount(name), err)
	}
	return nil
}

// closeVolumes unmounts the volumes.
func (p *Platform) closeVolumes() (err error) {
	all, _ := filepath.Glob(filepath.Join(p.mountPoints(), "*"))
	for _, at := range all {
		if e := unix.Unmount(at, unix.MNT_DETACH); e != nil && !errors.Is(e, unix.EINVAL) { // EINVAL: not mounted
			err = errors.Join(err, fmt.Errorf("unmount %s: %w", at, e))
		}
	}
	return err
}

// joinProxies runs, for each proxy, the join command that the platform returns. Clients reach each
// proxy through its Wire.
func (s *Spread) joinProxies(ctx context.Context) error {
	file := filepath.Join(s.dir, "volumes.yaml")
	var list strings.Builder
	for _, v := range s.volumes {
		fmt.Fprintf(&list, "- {name: %s, mount: %s, plugin: %s, options: {%s}}\n", v.Name, s.Mount(v.Name), v.Plugin, v.Options)
	}
	if err := os.WriteFile(file, []byte("volumes:\n"+list.String()), 0o600); err != nil {
		return err
	}
	for i := range s.proxies {
		token, err := s.admin.CreateJoinToken(ctx, "storage")
		if err != nil {
			return err
		}
		port, err := freePort("tcp")
		if err != nil {
			return err
		}
		w := &Wire{to: []string{port}}
		url, err := w.Open()
		if err != nil {
			return err
		}
		s.Wires = append(s.Wires, w)
		x := s.process("proxy-" + strconv.Itoa(i+1))
		s.Proxies = append(s.Proxies, x)
		x.args = append(strings.Fields(token.Command)[1:], "--name", x.name, "--data", filepath.Join(s.data, "storage", x.name), "--bin", s.bin,
			"--volume-file", file, "--listen", port, "--public-url", url, "--origin", s.URL)
		if err := x.Start(); err != nil {
			return err
		}
	}
	return s.until(ctx, "the volumes are healthy", func() bool {
		all, err := s.admin.Volumes(ctx)
		for _, v := range all {
			if v.Health != "HEALTHY" {
				return false
			}
		}
		return err == nil && len(all) == len(s.volumes)
	})
}
