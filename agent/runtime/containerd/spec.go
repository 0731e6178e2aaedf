package containerd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/sandbox"
)

// build completes an OCI spec. It runs after the snapshot was created, because a user's name is
// looked up in the image's files.
func (r *Runtime) build(s runtime.Spec, lower string) oci.SpecOpts {
	return func(ctx context.Context, c oci.Client, container *containers.Container, spec *oci.Spec) error {
		p := spec.Process
		if s.Identity != nil {
			p.User = specs.User{UID: s.Identity.UID, GID: s.Identity.GID, AdditionalGids: slices.Clone(s.Identity.Groups)}
		} else if err := user(ctx, c, container, spec, s.User, lower); err != nil {
			return err
		}
		p.Args, p.Env, p.Cwd = s.Args, s.Env, s.Cwd
		sandbox.Restrict(spec)
		if p.User.UID != 0 {
			p.User.AdditionalGids = append(p.User.AdditionalGids, s.Groups...)
		}
		spec.Hostname = s.Hostname
		spec.Linux.CgroupsPath = s.CgroupPath
		limits(spec.Linux.Resources, s.Resources)
		namespacesOf(spec.Linux, s.NetNS)
		mounts(spec, s)
		sandbox.Filter(spec)
		if s.Edit != nil {
			if err := s.Edit(spec); err != nil {
				return fmt.Errorf("apply device edits: %w", err)
			}
		}
		sandbox.LimitIoctls(spec.Linux.Seccomp)
		return nil
	}
}

// user resolves the image's user. The common case, root, does not require a mount of the root file
// system.
func user(ctx context.Context, c oci.Client, container *containers.Container, spec *oci.Spec, name, lower string) error {
	switch name {
	case "", "0", "0:0", "root", "root:root":
		return nil
	}
	if lower != "" {
		// Without a snapshot, the library reads the accounts below the root of the spec.
		container = &containers.Container{ID: container.ID}
		path := spec.Root.Path
		spec.Root.Path = lower
		defer func() { spec.Root.Path = path }()
	}
	if err := oci.WithUser(name)(ctx, c, container, spec); err != nil {
		return fmt.Errorf("user %q of the image: %w: %w", name, err, errdefs.ErrFailedPrecondition)
	}
	login, _, _ := strings.Cut(name, ":")
	if err := oci.WithAdditionalGIDs(login)(ctx, c, container, spec); err != nil {
		return fmt.Errorf("groups of user %q of the image: %w", name, err)
	}
	return nil
}

func limits(res *specs.LinuxResources, want runtime.Resources) {
	if want.MilliCPU > 0 {
		period := uint64(100_000)
		// The kernel's minimum quota is a millisecond.
		quota := max(want.MilliCPU*100, 1000)
		shares := uint64(max(want.MilliCPU*1024/1000, 2))
		res.CPU = &specs.LinuxCPU{Period: &period, Quota: &quota, Shares: &shares}
	}
	if want.CPUs != "" || want.Mems != "" {
		if res.CPU == nil {
			res.CPU = &specs.LinuxCPU{}
		}
		res.CPU.Cpus, res.CPU.Mems = want.CPUs, want.Mems
	}
	if want.Memory > 0 {
		// This limit is the sum of memory and swap, so the same value disables swap.
		res.Memory = &specs.LinuxMemory{Limit: &want.Memory}
		if swapAccounting() {
			res.Memory.Swap = &want.Memory
		}
	}
	if want.Pids > 0 {
		res.Pids = &specs.LinuxPids{Limit: &want.Pids}
	}
}

// swapAccounting reports whether swap can be limited: always in cgroup v2, and depending on a boot
// option in v1.
func swapAccounting() bool {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return true
	}
	_, err := os.Stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
	return err == nil
}

func namespacesOf(l *specs.Linux, netns string) {
	l.Namespaces = []specs.LinuxNamespace{
		{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
		{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace, Path: netns},
	}
	// With a private cgroup namespace a container sees only its own cgroup.
	if _, err := os.Stat("/proc/self/ns/cgroup"); err == nil {
		l.Namespaces = append(l.Namespaces, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
}

func mounts(spec *oci.Spec, s runtime.Spec) {
	shm := s.ShmBytes
	if shm <= 0 {
		shm = 64 << 20
	}
	for i, m := range spec.Mounts {
		if m.Destination == "/dev/shm" {
			spec.Mounts[i].Options = []string{"nosuid", "nodev", "mode=1777", fmt.Sprintf("size=%d", shm)}
		}
	}
	spec.Mounts = append(spec.Mounts, s.Mounts...)
}
