package mount

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runner/peer"
	"github.com/berthhq/berth/agent/trust"
)

// Work is the scratch directory of every container, and the working directory of its command.
const Work = "/home/work"

// Resources is the file in a container that describes its devices. It exists only if there are any.
const Resources = "/opt/berth/resources"

// Files describes the files that the agent itself adds to a container.
type Files struct {
	Dir       string // of the kernel, on the host
	Runner    string // on the host
	Hostname  string
	Address   netip.Addr
	Peers     []Peer      // the other kernels of the session
	Bootstrap string      // script, "" = none
	Resources []string    // lines of the file Resources
	Cluster   *peer.Files // of a session of several kernels; nil = it has one
	CABundle  string      // on the host; "" = none
}

// Peer is another container that can be reached by name.
type Peer struct {
	Hostname string
	Address  netip.Addr
}

// Disk returns the host directory with everything that a container can write; it has a size limit.
func (f Files) Disk() string { return filepath.Join(f.Dir, "disk") }

// Scratch returns the host directory that is mounted at Work.
func (f Files) Scratch() string { return filepath.Join(f.Disk(), "home") }

// etc returns the directory of the files of /etc, which root in the container can enlarge. Older
// agents stored these files beside the disk.
func (f Files) etc() string {
	etc := filepath.Join(f.Disk(), "etc")
	if _, err := os.Stat(etc); err != nil {
		return filepath.Join(f.Dir, "etc")
	}
	return etc
}

// Names in Dir.
const (
	bootstrap = "bootstrap"
	resources = "resources"
	cluster   = "cluster"
)

// Mounts returns the mounts of the files, which Write creates.
func (f Files) Mounts() []specs.Mount {
	mounts := []specs.Mount{
		bind(f.Scratch(), Work, "nosuid", "nodev"),
		bind(f.Runner, runner.Path, "ro", "nosuid", "nodev"),
	}
	for _, name := range []string{"hostname", "hosts", "resolv.conf"} {
		mounts = append(mounts, bind(filepath.Join(f.Disk(), "etc", name), "/etc/"+name, "nosuid", "nodev", "noexec"))
	}
	if f.Bootstrap != "" {
		mounts = append(mounts, bind(filepath.Join(f.Dir, bootstrap), runner.BootstrapPath, "ro", "nosuid", "nodev"))
	}
	if f.Cluster != nil {
		mounts = append(mounts, f.clusterMounts()...)
	}
	if f.CABundle != "" {
		mounts = append(mounts, trust.Mount(f.CABundle))
	}
	if len(f.Resources) > 0 {
		mounts = append(mounts, bind(filepath.Join(f.Dir, resources), Resources, "ro", "nosuid", "nodev", "noexec"))
	}
	return mounts
}

// clusterMounts mounts the files of package peer, and two of them where programs look for them.
func (f Files) clusterMounts() []specs.Mount {
	dir, options := f.cluster(), []string{"ro", "nosuid", "nodev", "noexec"}
	mounts := []specs.Mount{
		bind(dir, peer.Dir, options...),
		bind(filepath.Join(dir, peer.Hostfile), peer.Job, options...),
	}
	if config := f.Cluster.SSHConfig(dir); config != "" {
		mounts = append(mounts, bind(config, peer.Config, options...))
	}
	return mounts
}

// cluster returns the host directory with the files of package peer.
func (f Files) cluster() string { return filepath.Join(f.Dir, cluster) }

// Owned returns the directory and files on the host that belong to the container's user.
func (f Files) Owned() []string {
	owned := []string{f.Scratch()}
	if f.Cluster != nil {
		owned = append(owned, f.Cluster.Keys(f.cluster())...)
	}
	return owned
}

// Write creates the files, replacing those of an earlier attempt.
func (f Files) Write() error {
	etc := filepath.Join(f.Disk(), "etc")
	for _, dir := range []string{etc, f.Scratch()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"hostname": f.Hostname + "\n", "hosts": f.hosts(), "resolv.conf": Resolv()} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if f.Bootstrap != "" {
		if err := os.WriteFile(filepath.Join(f.Dir, bootstrap), []byte(f.Bootstrap), 0o755); err != nil {
			return err
		}
	}
	if f.Cluster != nil {
		if err := f.Cluster.Write(f.cluster()); err != nil {
			return fmt.Errorf("files of the session's kernels: %w", err)
		}
	}
	path := filepath.Join(f.Dir, resources)
	if len(f.Resources) == 0 {
		return os.RemoveAll(path)
	}
	return os.WriteFile(path, []byte(strings.Join(f.Resources, "\n")+"\n"), 0o644)
}

// WriteHosts updates the host names in a container, also while it runs.
func (f Files) WriteHosts() error {
	return os.WriteFile(filepath.Join(f.etc(), "hosts"), []byte(f.hosts()), 0o644)
}

// Folders returns the host directory in which the folders of volumes are mounted while the
// container is being created.
func (f Files) Folders() string { return filepath.Join(f.Dir, "folders") }

// Remove deletes the files that Write created outside the disk, and mounts below Folders that a
// killed agent left.
func (f Files) Remove() error {
	if err := Unmount(f.Folders()); err != nil {
		return err
	}
	for _, name := range []string{"etc", bootstrap, resources, cluster, "work"} {
		if err := os.RemoveAll(filepath.Join(f.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string, options ...string) specs.Mount {
	return specs.Mount{Source: source, Destination: target, Type: "bind", Options: append([]string{"rbind", "rprivate"}, options...)}
}

func (f Files) hosts() string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	if f.Address.IsValid() {
		fmt.Fprintf(&b, "%s\t%s\n", f.Address, f.Hostname)
	}
	for _, p := range f.Peers {
		fmt.Fprintf(&b, "%s\t%s\n", p.Address, p.Hostname)
	}
	return b.String()
}

// Resolv returns the host's resolver configuration without loopback servers, which a container
// cannot reach. If the host uses systemd-resolved, its upstream servers are used.
func Resolv() string {
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if kept, servers := withoutLoopback(string(text)); servers > 0 {
			return kept
		}
	}
	return ""
}

// Resolvers returns the servers of Resolv.
func Resolvers() (servers []netip.Addr) {
	for line := range strings.Lines(Resolv()) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "nameserver" {
			if addr, err := netip.ParseAddr(fields[1]); err == nil {
				servers = append(servers, addr)
			}
		}
	}
	return servers
}

func withoutLoopback(text string) (kept string, servers int) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == "nameserver" {
			addr, err := netip.ParseAddr(fields[1])
			if err != nil || addr.IsLoopback() {
				continue
			}
			servers++
		}
		b.WriteString(line)
	}
	return b.String(), servers
}
