package mount

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runner"
)

// Work is the scratch directory in every container, and where it starts.
const Work = "/home/work"

// Resources is the file in a container that says what it has of devices, there
// when it has any.
const Resources = "/opt/berth/resources"

// Files describes what the agent itself puts into a container.
type Files struct {
	Dir       string // of the kernel, on the host
	Runner    string // on the host
	Hostname  string
	Address   netip.Addr
	Peers     []Peer   // the other kernels of the session
	Bootstrap string   // script, "" = none
	Resources []string // lines of the file Resources
}

// Peer is another container that is reached by its name.
type Peer struct {
	Hostname string
	Address  netip.Addr
}

// Disk is the host's directory of all that a container can fill: it has a limit.
func (f Files) Disk() string { return filepath.Join(f.Dir, "disk") }

// Scratch is the host's directory behind Work.
func (f Files) Scratch() string { return filepath.Join(f.Disk(), "home") }

// etc has the files of /etc, which root of the container can grow. Those of a container
// that an older agent made lie beside the disk.
func (f Files) etc() string {
	etc := filepath.Join(f.Disk(), "etc")
	if _, err := os.Stat(etc); err != nil {
		return filepath.Join(f.Dir, "etc")
	}
	return etc
}

// Write makes the files and returns their mounts. Whatever an earlier attempt
// left is replaced.
func (f Files) Write() ([]specs.Mount, error) {
	etc := filepath.Join(f.Disk(), "etc")
	if err := os.MkdirAll(etc, 0o755); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.Scratch(), 0o755); err != nil {
		return nil, err
	}
	mounts := []specs.Mount{
		bind(f.Scratch(), Work, "nosuid", "nodev"),
		bind(f.Runner, runner.Path, "ro", "nosuid", "nodev"),
	}
	for name, text := range map[string]string{"hostname": f.Hostname + "\n", "hosts": f.hosts(), "resolv.conf": Resolv()} {
		path := filepath.Join(etc, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
		mounts = append(mounts, bind(path, "/etc/"+name, "nosuid", "nodev", "noexec"))
	}
	if f.Bootstrap != "" {
		path := filepath.Join(f.Dir, "bootstrap")
		if err := os.WriteFile(path, []byte(f.Bootstrap), 0o755); err != nil {
			return nil, err
		}
		mounts = append(mounts, bind(path, runner.BootstrapPath, "ro", "nosuid", "nodev"))
	}
	path := filepath.Join(f.Dir, resources)
	if len(f.Resources) == 0 {
		return mounts, os.RemoveAll(path)
	}
	if err := os.WriteFile(path, []byte(strings.Join(f.Resources, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	return append(mounts, bind(path, Resources, "ro", "nosuid", "nodev", "noexec")), nil
}

const resources = "resources" // in Dir

// WriteHosts brings the names of a container up to date, also while it runs.
func (f Files) WriteHosts() error {
	return os.WriteFile(filepath.Join(f.etc(), "hosts"), []byte(f.hosts()), 0o644)
}

// Folders is where the folders of volumes are mounted on the host while the
// container is being created.
func (f Files) Folders() string { return filepath.Join(f.Dir, "folders") }

// Remove deletes what Write made beside the disk, and what a killed agent left of
// Folders.
func (f Files) Remove() error {
	if err := Unmount(f.Folders()); err != nil {
		return err
	}
	for _, name := range []string{"etc", "bootstrap", resources, "work"} {
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

// Resolv is the host's resolver configuration without servers on loopback,
// which a container cannot reach. Where the host resolves through systemd, its
// own list of servers is used.
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

// Resolvers are the servers in Resolv.
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
