// Package probe determines which features this host has for kernels, so that a missing one is
// reported by name instead of failing a start halfway.
package probe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
)

// Required are the probes that must succeed, because no kernel could run otherwise.
var Required = []string{"root", "cgroup", "nftables", "runc"}

// Host runs all probes. dir is the directory for containers.
func Host(ctx context.Context, runc, dir string) []*agentpb.Probe {
	return []*agentpb.Probe{
		root(), capabilities(), controllers(), overlay(dir), userns(), firewall(), vxlan(), runtime(ctx, runc),
	}
}

// Failed returns the first required probe that failed, or nil.
func Failed(list []*agentpb.Probe) *agentpb.Probe {
	for _, name := range Required {
		for _, p := range list {
			if p.Name == name && !p.Ok {
				return p
			}
		}
	}
	return nil
}

func result(name string, err error, detail string) *agentpb.Probe {
	if err != nil {
		return &agentpb.Probe{Name: name, Detail: err.Error()}
	}
	return &agentpb.Probe{Name: name, Ok: true, Detail: detail}
}

func root() *agentpb.Probe {
	uid := os.Geteuid()
	return &agentpb.Probe{Name: "root", Ok: uid == 0, Detail: fmt.Sprintf("uid %d", uid)}
}

// needed are the capabilities, by bit number, that an agent needs to run containers.
var needed = map[string]uint{
	"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7,
	"CAP_NET_ADMIN": 12, "CAP_SYS_CHROOT": 18, "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_MKNOD": 27,
}

func capabilities() *agentpb.Probe {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return result("capabilities", err, "")
	}
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		var missing []string
		for name, bit := range needed {
			if set&(1<<bit) == 0 {
				missing = append(missing, name)
			}
		}
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("missing %s", strings.Join(missing, ", "))
		}
		return result("capabilities", err, fmt.Sprintf("%#x", set))
	}
	return result("capabilities", fmt.Errorf("no CapEff in /proc/self/status"), "")
}

// wanted are the controllers that limits of containers need.
var wanted = []string{"cpu", "memory", "pids"}

func controllers() *agentpb.Probe {
	mode := cgroups.Mode()
	var missing []string
	switch mode {
	case cgroups.Unified:
		have, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
		if err != nil {
			return result("cgroup", err, "")
		}
		for _, c := range wanted {
			if !strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+c+" ") {
				missing = append(missing, c)
			}
		}
	case cgroups.Legacy, cgroups.Hybrid:
		for _, c := range append(wanted, "devices", "freezer") {
			if _, err := os.Stat("/sys/fs/cgroup/" + c); err != nil {
				missing = append(missing, c)
			}
		}
	default:
		return result("cgroup", fmt.Errorf("no cgroups at /sys/fs/cgroup"), "")
	}
	names := map[cgroups.CGMode]string{cgroups.Unified: "v2", cgroups.Legacy: "v1", cgroups.Hybrid: "v1 hybrid"}
	if len(missing) > 0 {
		return result("cgroup", fmt.Errorf("%s without %s", names[mode], strings.Join(missing, ", ")), "")
	}
	return result("cgroup", nil, names[mode])
}

// overlay mounts an overlayfs, because some file systems cannot be its upper layer.
func overlay(dir string) *agentpb.Probe {
	base, err := os.MkdirTemp(dir, "probe")
	if err != nil {
		return result("overlayfs", err, "")
	}
	defer os.RemoveAll(base)
	for _, d := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o700); err != nil {
			return result("overlayfs", err, "")
		}
	}
	merged := filepath.Join(base, "merged")
	data := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", base, base, base)
	if err := unix.Mount("overlay", merged, "overlay", 0, data); err != nil {
		return result("overlayfs", fmt.Errorf("mount below %s: %w", dir, err), "")
	}
	return result("overlayfs", unix.Unmount(merged, unix.MNT_DETACH), "mounts below "+dir)
}

func userns() *agentpb.Probe {
	text, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	limit := strings.TrimSpace(string(text))
	if err == nil && limit == "0" {
		err = fmt.Errorf("max_user_namespaces is 0")
	}
	return result("user-namespaces", err, "at most "+limit)
}

func firewall() *agentpb.Probe {
	c, err := nftables.New()
	if err == nil {
		_, err = c.ListTables()
	}
	return result("nftables", err, "answers")
}

// vxlan checks the feature that sessions over several hosts need. The kernel may have it built in
// or load it as a module on demand.
func vxlan() *agentpb.Probe {
	if _, err := os.Stat("/sys/module/vxlan"); err == nil {
		return result("vxlan", nil, "present")
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return result("vxlan", err, "")
	}
	release := unix.ByteSliceToString(u.Release[:])
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		text, err := os.ReadFile(filepath.Join("/lib/modules", release, list))
		if err == nil && strings.Contains(string(text), "/vxlan.ko") {
			return result("vxlan", nil, "available to kernel "+release)
		}
	}
	return result("vxlan", fmt.Errorf("kernel %s does not list it", release), "")
}

func runtime(ctx context.Context, runc string) *agentpb.Probe {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, runc, "--version").Output()
	if err != nil {
		return result("runc", fmt.Errorf("%s: %w", runc, err), "")
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return result("runc", nil, first)
}
