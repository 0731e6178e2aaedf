package network

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// linkLocal holds, among others, the address at which clouds hand out a
// machine's credentials.
var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

// peer lets a bridge's own kernels talk, or no longer. Where the host has bridge
// traffic pass its IP filters (Docker does that), frames that stay on one
// bridge look like forwarded packets.
func (m *Manager) peer(bridge string, allow bool) error {
	c, err := m.own.firewall()
	if err != nil {
		return err
	}
	change := c.SetDeleteElements
	if allow {
		change = c.SetAddElements
	}
	if err := change(m.peers(), []nftables.SetElement{pair(bridge)}); err != nil {
		return err
	}
	return c.Flush()
}

// peers is the set of pairs of interfaces between which packets may pass.
func (m *Manager) peers() *nftables.Set {
	both, err := nftables.ConcatSetType(nftables.TypeIFName, nftables.TypeIFName)
	if err != nil {
		panic(err) // two known types
	}
	return &nftables.Set{Table: m.table(), Name: "peers", KeyType: both, Concatenation: true}
}

func pair(bridge string) nftables.SetElement {
	key := make([]byte, 2*unix.IFNAMSIZ)
	copy(key, bridge)
	copy(key[unix.IFNAMSIZ:], bridge)
	return nftables.SetElement{Key: key}
}

func (m *Manager) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: "berth-" + m.tag}
}

// ownRules in the words of nft, with B = our bridges, and sets as in sets.go:
//
//	input       iifname B drop
//	            iifname "uplink" ct state != established,related drop
//	output      oifname B ct state != established,related drop
//	forward     iifname B meta nfproto ipv6 drop
//	            iifname B ip saddr != @subnets drop
//	            iifname B ip daddr 169.254.0.0/16 drop
//	            iifname . oifname @peers accept
//	            iifname B oifname B drop
//	            iifname B ip daddr @subnets drop
//	            oifname B ct state != established,related drop
//	postrouting ip saddr @subnets oifname "uplink" masquerade
func (m *Manager) ownRules(b *builder) error {
	peers, known := m.peers(), m.ownSets()
	var pairs []nftables.SetElement
	for _, seg := range m.sessions {
		pairs = append(pairs, pair(seg.bridge(m)))
	}
	if err := b.sets(append(known.all(), set{peers, pairs})); err != nil {
		return err
	}
	from := name(expr.MetaKeyIIFNAME, expr.CmpOpEq, m.bridges())
	to := name(expr.MetaKeyOIFNAME, expr.CmpOpEq, m.bridges())

	input := b.filter("input", nftables.ChainHookInput)
	input(from, drop)
	input(name(expr.MetaKeyIIFNAME, expr.CmpOpEq, ownUplink), unknown(), drop)

	output := b.filter("output", nftables.ChainHookOutput)
	output(to, unknown(), drop)

	forward := b.filter("forward", nftables.ChainHookForward)
	forward(from, family(unix.NFPROTO_IPV6), drop)
	forward(from, from4(known.subnets, false), drop)
	forward(from, network(ipDestination, linkLocal), drop)
	forward([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 2},
		&expr.Lookup{SourceRegister: 1, SetName: peers.Name, SetID: peers.ID},
		&expr.Verdict{Kind: expr.VerdictAccept},
	})
	forward(from, to, drop)
	forward(from, to4(known.subnets), drop) // of kernels elsewhere: no network outside is meant
	forward(to, unknown(), drop)

	nat := b.nat("postrouting")
	nat(from4(known.subnets, true), name(expr.MetaKeyOIFNAME, expr.CmpOpEq, ownUplink), masquerade)
	return nil
}

// hostRules in the words of nft, with U = our uplink, and the bridges of an agent
// that had them on the host; bth* = those of all agents; inner = the address that
// packets of our kernels have here:
//
//	input       iifname U drop
//	            udp dport @listens meta nfproto ipv6 drop
//	            udp dport @listens ip saddr != @agents drop
//	output      oifname U ct state != established,related drop
//	forward     iifname U meta nfproto ipv6 drop
//	            iifname U ip saddr != inner drop
//	            iifname U ip daddr 169.254.0.0/16 drop
//	            iifname U oifname "bth*" drop
//	            iifname "bth*" udp dport @ports drop
//	            oifname U ct state != established,related drop
//	postrouting ip saddr inner oifname != "bth*" masquerade
func (m *Manager) hostRules(b *builder) error {
	known := m.hostSets()
	if err := b.sets(known.all()); err != nil {
		return err
	}
	from := name(expr.MetaKeyIIFNAME, expr.CmpOpEq, m.bridges())
	to := name(expr.MetaKeyOIFNAME, expr.CmpOpEq, m.bridges())

	input := b.filter("input", nftables.ChainHookInput)
	input(from, drop)
	input(udpTo(known.listens), family(unix.NFPROTO_IPV6), drop)
	input(udpTo(known.listens), from4(known.agents, false), drop)

	output := b.filter("output", nftables.ChainHookOutput)
	output(to, unknown(), drop)

	inner := netip.PrefixFrom(m.inner(), 32)
	forward := b.filter("forward", nftables.ChainHookForward)
	forward(from, family(unix.NFPROTO_IPV6), drop)
	forward(from, notNetwork(ipSource, inner), drop)
	forward(from, network(ipDestination, linkLocal), drop)
	forward(from, name(expr.MetaKeyOIFNAME, expr.CmpOpEq, bridgePrefix), drop)
	forward(name(expr.MetaKeyIIFNAME, expr.CmpOpEq, bridgePrefix), udpTo(known.ports), drop)
	forward(to, unknown(), drop)

	nat := b.nat("postrouting")
	nat(network(ipSource, inner), name(expr.MetaKeyOIFNAME, expr.CmpOpNeq, bridgePrefix), masquerade)
	return nil
}

// builder adds sets, chains and rules to a table, in one transaction.
type builder struct {
	*nftables.Conn
	table *nftables.Table
}

func (b *builder) sets(list []set) error {
	for _, s := range list {
		if err := b.AddSet(s.Set, s.elements); err != nil {
			return err
		}
	}
	return nil
}

// rule adds a rule made of parts to the end of a chain.
type rule func(parts ...[]expr.Any)

func (b *builder) filter(name string, hook *nftables.ChainHook) rule {
	return b.chain(name, hook, nftables.ChainPriorityFilter, nftables.ChainTypeFilter)
}

func (b *builder) nat(name string) rule {
	return b.chain(name, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, nftables.ChainTypeNAT)
}

func (b *builder) chain(name string, hook *nftables.ChainHook, prio *nftables.ChainPriority, kind nftables.ChainType) rule {
	policy := nftables.ChainPolicyAccept
	ch := b.AddChain(&nftables.Chain{Name: name, Table: b.table, Type: kind, Hooknum: hook, Priority: prio, Policy: &policy})
	return func(parts ...[]expr.Any) {
		var all []expr.Any
		for _, p := range parts {
			all = append(all, p...)
		}
		b.AddRule(&nftables.Rule{Table: b.table, Chain: ch, Exprs: all})
	}
}

// What becomes of a packet.
var (
	drop       = []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	masquerade = []expr.Any{&expr.Masq{}}
)

// name compares the beginning of an interface name: shorter data than the
// register is a prefix.
func name(key expr.MetaKey, op expr.CmpOp, prefix string) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Cmp{Op: op, Register: 1, Data: []byte(prefix)},
	}
}

func family(proto byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{proto}},
	}
}

// Offsets in the IPv4 header.
const (
	ipSource      = 12
	ipDestination = 16
)

// network matches IPv4 packets with an address of a network, notNetwork those
// with any other.
func network(offset uint32, p netip.Prefix) []expr.Any    { return compare(offset, expr.CmpOpEq, p) }
func notNetwork(offset uint32, p netip.Prefix) []expr.Any { return compare(offset, expr.CmpOpNeq, p) }

func compare(offset uint32, op expr.CmpOp, p netip.Prefix) []expr.Any {
	base := p.Masked().Addr().As4()
	mask := ^uint32(0) << (32 - p.Bits())
	return append(family(unix.NFPROTO_IPV4),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: 1, Data: base[:]},
	)
}

// unknown matches packets of connections that the kernel did not begin.
func unknown() []expr.Any {
	known := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
	}
}
