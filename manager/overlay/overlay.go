// Package overlay assigns a network to sessions with kernels on several agents: a number (VNI)
// and a subnet of the configured address range. Both are assigned round-robin, so that those
// of a recently ended session, which an unreachable agent may still use, are reused as late as
// possible. The scheduler's transaction takes networks; the end of a session frees them.
package overlay

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionnetwork"
)

// DefaultRange is the range for subnets of sessions on several agents.
var DefaultRange = netip.MustParsePrefix("10.214.0.0/16")

const (
	// besides is the number of addresses in a subnet that kernels cannot have: network,
	// gateway and broadcast.
	besides = 3
	// smallest is the prefix length of the smallest subnet, for up to 5 kernels.
	smallest = 29
)

// Range is the address range of all subnets.
type Range struct{ prefix netip.Prefix }

// Parse parses a setting; empty means DefaultRange.
func Parse(setting string) (Range, error) {
	p, err := netip.ParsePrefix(cmp.Or(setting, DefaultRange.String()))
	if err != nil || !p.Addr().Is4() || p.Bits() < 8 || p.Bits() > smallest || p != p.Masked() {
		return Range{}, fmt.Errorf("overlay range %.80q is not an IPv4 network between /8 and /%d: %w", setting, smallest, errdefs.ErrInvalidArgument)
	}
	return Range{p}, nil
}

// Default returns DefaultRange.
func Default() Range { return Range{DefaultRange} }

func (r Range) String() string { return r.prefix.String() }

// Part is the network of one session.
type Part struct {
	VNI    int
	Subnet netip.Prefix
}

// Address returns the address of a kernel by its index.
func Address(subnet netip.Prefix, index int) netip.Addr {
	return address(number(subnet.Addr()) + besides - 1 + uint32(index))
}

// Used are the networks of live sessions.
type Used struct {
	r       Range
	subnets []netip.Prefix // sorted
	vnis    map[int]bool
	last    Part // assigned last, whether or not it is still in use
}

// Read reads the networks in use.
func (r Range) Read(ctx context.Context, networks *ent.SessionNetworkClient) (*Used, error) {
	u := &Used{r: r, vnis: map[int]bool{}}
	live, err := networks.Query().Where(sessionnetwork.FreedAtIsNil()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read networks: %w", err)
	}
	for _, n := range live {
		p, err := netip.ParsePrefix(n.Subnet)
		if err != nil {
			return nil, fmt.Errorf("subnet of network %d: %w", n.Vni, err)
		}
		u.add(Part{n.Vni, p})
	}
	last, err := networks.Query().Order(sessionnetwork.ByCreatedAt(sql.OrderDesc()), sessionnetwork.ByID(sql.OrderDesc())).First(ctx)
	switch {
	case ent.IsNotFound(err):
		return u, nil
	case err != nil:
		return nil, fmt.Errorf("read the latest network: %w", err)
	}
	if u.last.Subnet, err = netip.ParsePrefix(last.Subnet); err != nil {
		return nil, fmt.Errorf("subnet of network %d: %w", last.Vni, err)
	}
	u.last.VNI = last.Vni
	return u, nil
}

func (u *Used) add(p Part) {
	u.vnis[p.VNI] = true
	at, _ := slices.BinarySearchFunc(u.subnets, p.Subnet, compare)
	u.subnets = slices.Insert(u.subnets, at, p.Subnet)
}

// Take assigns a network to a session with some kernels: the first free one after the one that
// was assigned last. It returns false if none is free.
func (u *Used) Take(kernels int) (Part, bool) {
	size := 1 << (32 - bitsFor(kernels))
	var p Part
	found := false
	if start := u.after(); start < u.end() {
		p.Subnet, found = u.free(start, u.end(), size)
	}
	if !found {
		p.Subnet, found = u.free(u.begin(), u.end(), size)
	}
	if !found {
		return Part{}, false
	}
	p.VNI = max(u.last.VNI+1, agentpb.MinVNI)
	for p.VNI > agentpb.MaxVNI || u.vnis[p.VNI] {
		if p.VNI++; p.VNI > agentpb.MaxVNI {
			p.VNI = agentpb.MinVNI
		}
	}
	u.add(p)
	u.last = p
	return p, true
}

// Largest returns the largest number of kernels for which Take finds a network.
func (u *Used) Largest() int {
	for b := u.r.prefix.Bits(); b <= smallest; b++ {
		if _, ok := u.free(u.begin(), u.end(), 1<<(32-b)); ok {
			return 1<<(32-b) - besides
		}
	}
	return 0
}

func (u *Used) begin() uint64 { return uint64(number(u.r.prefix.Addr())) }
func (u *Used) end() uint64   { return u.begin() + 1<<(32-u.r.prefix.Bits()) }

// after returns the end of the subnet that was assigned last.
func (u *Used) after() uint64 {
	if !u.last.Subnet.IsValid() || !u.r.prefix.Overlaps(u.last.Subnet) {
		return u.begin()
	}
	return uint64(number(u.last.Subnet.Addr())) + 1<<(32-u.last.Subnet.Bits())
}

// free returns the first free subnet of a size between two addresses.
func (u *Used) free(from, to uint64, size int) (netip.Prefix, bool) {
	step := uint64(size)
	at := (from + step - 1) / step * step
	for at+step <= to {
		p := netip.PrefixFrom(address(uint32(at)), 33-bits.Len64(step))
		// Of the used subnets, only the last one that begins before the end of this one can
		// overlap.
		i, _ := slices.BinarySearchFunc(u.subnets, p, compare)
		switch {
		case i < len(u.subnets) && u.subnets[i].Overlaps(p):
		case i > 0 && u.subnets[i-1].Overlaps(p):
			i--
		default:
			return p, true
		}
		taken := uint64(number(u.subnets[i].Addr())) + 1<<(32-u.subnets[i].Bits())
		at = (max(taken, at+1) + step - 1) / step * step
	}
	return netip.Prefix{}, false
}

func bitsFor(kernels int) int {
	return min(smallest, 32-bits.Len(uint(kernels+besides-1)))
}

func compare(a, b netip.Prefix) int { return cmp.Compare(number(a.Addr()), number(b.Addr())) }

func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
