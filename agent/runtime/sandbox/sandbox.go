// Package sandbox has the rules that every container of an agent follows: the capabilities of root,
// the paths of the host that are hidden, and the system calls that are allowed. Containers of sessions
// and steps of builds use the same rules.
package sandbox

import (
	"runtime"
	"slices"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// capabilities are the capabilities of root in a container: to own, enter and signal its own files
// and processes, and to bind low ports. Raw sockets, device nodes and the audit log are excluded.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
	"CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_SETFCAP", "CAP_SYS_CHROOT",
	"CAP_NET_BIND_SERVICE",
}

// masked are paths that expose the host, in addition to containerd's own list.
var masked = []string{"/proc/acpi", "/proc/sysrq-trigger", "/sys/fs/cgroup", "/sys/dev/block"}

// nativeArch limits seccomp to the host's native system calls: building a filter that includes the
// 32-bit ones takes a third of a container's start time.
var nativeArch = map[string]specs.Arch{"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64}

// Restrict limits what the process of a spec, with its user, can do. It hides paths of the host.
func Restrict(spec *specs.Spec) {
	p := spec.Process
	p.Capabilities = &specs.LinuxCapabilities{
		Bounding: slices.Clone(capabilities), Permitted: slices.Clone(capabilities), Effective: slices.Clone(capabilities),
	}
	if p.User.UID != 0 {
		// Only root may have capabilities. A process that root starts as another user must not
		// inherit them.
		p.Capabilities.Permitted, p.Capabilities.Effective = nil, nil
	}
	p.NoNewPrivileges = true
	p.Rlimits = []specs.POSIXRlimit{fileLimit()}
	spec.Linux.MaskedPaths = append(spec.Linux.MaskedPaths, masked...)
}

// Filter sets the system calls that the process of a spec can use. containerd's profile allows more of
// them for some capabilities, so Filter follows Restrict. A caller that adds rules calls LimitIoctls
// next; Filter does not.
func Filter(spec *specs.Spec) {
	spec.Linux.Seccomp = seccomp.DefaultProfile(spec)
	if arch, ok := nativeArch[runtime.GOARCH]; ok {
		spec.Linux.Seccomp.Architectures = []specs.Arch{arch}
	}
}

// fileLimit returns a high limit of open files, but not above the agent's own.
func fileLimit() specs.POSIXRlimit {
	soft, hard := openFiles()
	return specs.POSIXRlimit{Type: "RLIMIT_NOFILE", Soft: min(soft, 65536), Hard: min(hard, 1<<20)}
}
