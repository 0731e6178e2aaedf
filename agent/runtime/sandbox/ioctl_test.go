package sandbox

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// allowed reports whether a profile allows an ioctl with the given register value.
func allowed(p *specs.LinuxSeccomp, command uint64) bool {
	return slices.ContainsFunc(p.Syscalls, func(rule specs.LinuxSyscall) bool {
		return rule.Action == specs.ActAllow && slices.Contains(rule.Names, "ioctl") &&
			!slices.ContainsFunc(rule.Args, func(a specs.LinuxSeccompArg) bool {
				return a.Index != 1 || a.Op != specs.OpMaskedEqual || command&a.Value != a.ValueTwo
			})
	})
}

func profile(edits ...specs.LinuxSyscall) *specs.LinuxSeccomp {
	caps := &specs.LinuxCapabilities{Bounding: capabilities}
	p := seccomp.DefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: caps}})
	p.Syscalls = append(p.Syscalls, edits...)
	LimitIoctls(p)
	return p
}

func TestIoctls(t *testing.T) {
	p := profile(specs.LinuxSyscall{Names: []string{"ioctl"}, Action: specs.ActAllow}) // an edit of a plugin cannot allow more
	for name, command := range map[string]uint64{
		"FS_IOC_FSSETXATTR": 0x401c5820, "FS_IOC_SETFLAGS": 0x40086602, "FS_IOC32_SETFLAGS": 0x40046602,
		"BTRFS_IOC_SUBVOL_CREATE": 0x5000940e, "BTRFS_IOC_SUBVOL_CREATE_V2": 0x50009418,
		"BTRFS_IOC_SNAP_CREATE": 0x50009401, "BTRFS_IOC_SNAP_CREATE_V2": 0x50009417,
		"BTRFS_IOC_SNAP_DESTROY": 0x5000940f, "BTRFS_IOC_QGROUP_LIMIT": 0x8030942b, "BTRFS_IOC_QGROUP_ASSIGN": 0x4018_9429,
		"LL_IOC_PROJECT": 0x404066fd,
	} {
		for _, register := range []uint64{command, command | 1<<32, command | 0xffff_ffff<<32} {
			if allowed(p, register) {
				t.Errorf("%s is allowed as %x", name, register)
			}
		}
	}
	for name, command := range map[string]uint64{
		"TIOCGWINSZ": 0x5413, "FIONREAD": 0x541b, "TCGETS": 0x5401, "FIOCLEX": 0x5451, "TIOCSTI": 0x5412, "SIOCGIFCONF": 0x8912,
		"FS_IOC_GETFLAGS": 0x80086601, "FS_IOC_FSGETXATTR": 0x801c581f, "FS_IOC_FIEMAP": 0xc020660b, "FS_IOC_GETVERSION": 0x80087601,
		"FICLONE": 0x40049409, "FICLONERANGE": 0x4020940d, "FIDEDUPERANGE": 0xc0189436, "XFS_IOC_FSGEOMETRY": 0x8100587e,
		"an NVIDIA control": 0xc020462a, "DRM_IOCTL_VERSION": 0xc0406400, "KFD": 0x80084b01, "RDMA": 0xc0181b01,
	} {
		for _, register := range []uint64{command, command | 1<<32} {
			if !allowed(p, register) {
				t.Errorf("%s is refused as %x", name, register)
			}
		}
	}
}

// For every command, the profile agrees with the lists.
func TestIoctlsByTheLists(t *testing.T) {
	p := profile()
	in := func(list []pattern, command uint64) bool {
		return slices.ContainsFunc(list, func(x pattern) bool { return command&x.mask == x.value })
	}
	random := rand.New(rand.NewPCG(1, 2))
	for lower := range uint64(1 << 16) {
		for range 4 {
			command := random.Uint64()<<16 | lower
			if got, want := allowed(p, command), !in(refused, command) || in(shared, command); got != want {
				t.Fatalf("%x: allowed %v, and should be %v", command, got, want)
			}
		}
	}
}

// No rule of the profile allows a way around the filter of ioctl.
func TestNoOtherWay(t *testing.T) {
	for _, rule := range profile().Syscalls {
		for _, name := range []string{"file_setattr", "io_uring_setup", "io_uring_enter", "quotactl", "quotactl_fd", "mount", "open_by_handle_at"} {
			if rule.Action == specs.ActAllow && slices.Contains(rule.Names, name) {
				t.Errorf("%s is allowed", name)
			}
		}
	}
}
