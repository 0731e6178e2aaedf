package sandbox

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// pattern is a set of ioctl commands: those that equal value in the bits of mask. The lower half of
// a command identifies it by type and number; the upper half has the direction and size of its
// argument.
type pattern struct{ value, mask uint64 }

// refused are the ioctls with which the owner of a file can move it, or files that are created
// below it later, out of its quota. Their arguments are behind pointers, so a seccomp filter cannot
// distinguish harmful from harmless calls.
var refused = []pattern{
	{0x5820, 0xffff}, // FS_IOC_FSSETXATTR: sets the project id and whether new files inherit it
	{0x6602, 0xffff}, // FS_IOC_SETFLAGS: sets whether new files inherit the project id, among others
	{0x66fd, 0xffff}, // LL_IOC_PROJECT: the same for Lustre
	{0x9400, 0xff00}, // all of btrfs: subvolumes and snapshots have separate quota groups
}

// shared are the ioctls with btrfs's type that all file systems implement.
var shared = []pattern{
	{0x40049409, 0xffffffff}, // FICLONE
	{0x4020940d, 0xffffffff}, // FICLONERANGE
	{0xc0189436, 0xffffffff}, // FIDEDUPERANGE
}

// LimitIoctls replaces the profile's rules for ioctl by rules that allow all commands except the
// refused ones. A profile cannot express "neither A nor B" for one argument, so the rules list the
// ranges in between, each by the common prefix of its commands. The kernel uses only 32 bits of the
// register, so the masks ignore the upper half.
func LimitIoctls(p *specs.LinuxSeccomp) {
	const name = "ioctl"
	for i, rule := range p.Syscalls {
		if rule.Action == specs.ActAllow && slices.Contains(rule.Names, name) {
			p.Syscalls[i].Names = slices.DeleteFunc(slices.Clone(rule.Names), func(n string) bool { return n == name })
		}
	}
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(rule specs.LinuxSyscall) bool { return len(rule.Names) == 0 })
	for _, a := range slices.Concat(outside(refused), shared) {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
			Names: []string{name}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 1, Value: a.mask, ValueTwo: a.value, Op: specs.OpMaskedEqual}},
		})
	}
}

// outside returns patterns that together match every command that no given pattern matches. It
// halves the range of the lower half of commands until each part is entirely inside or outside.
func outside(given []pattern) (out []pattern) {
	const bits = 16
	var halve func(p pattern, bit uint64)
	halve = func(p pattern, bit uint64) {
		touched := slices.DeleteFunc(slices.Clone(given), func(g pattern) bool { return (g.value^p.value)&g.mask&p.mask != 0 })
		switch {
		case len(touched) == 0:
			out = append(out, p)
		case slices.ContainsFunc(touched, func(g pattern) bool { return g.mask&^p.mask == 0 }):
			// The whole part is refused.
		default:
			halve(pattern{p.value, p.mask | bit}, bit>>1)
			halve(pattern{p.value | bit, p.mask | bit}, bit>>1)
		}
	}
	halve(pattern{}, 1<<(bits-1))
	return out
}
