package containerd

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// pattern is a set of ioctl commands: those that are value where mask has ones.
// What a command is called by is its lower half, the type of device or file
// system and a number; the upper half has the direction and size of its argument.
type pattern struct{ value, mask uint64 }

// refused are the ioctls by which the owner of a file takes it, or what will be made
// below it, out of the limit that it counts against. Their arguments are behind
// pointers, so that a filter cannot tell what would do harm from what would not.
var refused = []pattern{
	{0x5820, 0xffff}, // FS_IOC_FSSETXATTR: the project, and whether new files inherit it
	{0x6602, 0xffff}, // FS_IOC_SETFLAGS: whether new files inherit the project, among others
	{0x66fd, 0xffff}, // LL_IOC_PROJECT: the same of Lustre
	{0x9400, 0xff00}, // all of btrfs: subvolumes and snapshots are quota groups of their own
}

// shared are the ioctls with the type of btrfs that are every file system's.
var shared = []pattern{
	{0x40049409, 0xffffffff}, // FICLONE
	{0x4020940d, 0xffffffff}, // FICLONERANGE
	{0xc0189436, 0xffffffff}, // FIDEDUPERANGE
}

// limitIoctls replaces what a profile allows of ioctl: all but what is refused. A
// profile has no "neither this nor that" about one argument, so it lists the ranges
// that lie between, each by the bits that its commands begin with. The kernel reads
// 32 bits, and the masks leave the register's other half out too.
func limitIoctls(p *specs.LinuxSeccomp) {
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

// outside lists patterns that together have every command that is in none of those
// given, by halving the lower half of commands until a part is wholly in or out.
func outside(given []pattern) (out []pattern) {
	const bits = 16
	var halve func(p pattern, bit uint64)
	halve = func(p pattern, bit uint64) {
		touched := slices.DeleteFunc(slices.Clone(given), func(g pattern) bool { return (g.value^p.value)&g.mask&p.mask != 0 })
		switch {
		case len(touched) == 0:
			out = append(out, p)
		case slices.ContainsFunc(touched, func(g pattern) bool { return g.mask&^p.mask == 0 }):
			// All of it is refused.
		default:
			halve(pattern{p.value, p.mask | bit}, bit>>1)
			halve(pattern{p.value | bit, p.mask | bit}, bit>>1)
		}
	}
	halve(pattern{}, 1<<(bits-1))
	return out
}
