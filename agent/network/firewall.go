package network

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/netlist"
)

func (m *Manager) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: "berth-" + m.tag}
}

// ownRules creates these rules, in the syntax of nft, with B = our bridges, and sets as in sets.go:
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
//	            iifname B ip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept
//	            iifname map @lists . ip daddr @open accept
//	            iifname map @lists . ip daddr . th dport @ports meta l4proto { tcp, udp } accept
//	            iifname B ip daddr @denied drop
//	            oifname B ct state != established,related drop
//	postrouting ip saddr @subnets oifname "uplink" masquerade
func (m *Manager) ownRules(b *builder) error {
	known := m.ownSets()
	if err := b.sets(known.all()); err != nil {
		return err
	}
	from, to, input := m.guard(b)
	input(name(expr.MetaKeyIIFNAME, expr.CmpOpEq, ownUplink), unknown(), drop)

	forward := b.filter("forward", nftables.ChainHookForward)
	forward(from, family(unix.NFPROTO_IPV6), drop)
	forward(from, from4(known.subnets, false), drop)
	forward(from, network(ipDestination, netlist.LinkLocal), drop)
	forward([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 2},
		lookup(known.peers),
	}, accept)
	forward(from, to, drop)
	forward(from, to4(known.subnets), drop) // of kernels on other agents: no outside network may be reached instead
	for _, proto := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		forward(from, to4(known.resolvers), transport(proto), []expr.Any{
			portPayload(1), &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0, dnsPort}},
		}, accept)
		forward(family(unix.NFPROTO_IPV4), transport(proto), listOf(known.lists), []expr.Any{
			ipPayload(ipDestination, second), portPayload(third), lookup(known.ports),
		}, accept)
	}
	forward(family(unix.NFPROTO_IPV4), listOf(known.lists), []expr.Any{ipPayload(ipDestination, second), lookup(known.open)}, accept)
	forward(from, to4(known.denied), drop)
	forward(to, unknown(), drop)

	nat := b.nat("postrouting")
	nat(from4(known.subnets, true), name(expr.MetaKeyOIFNAME, expr.CmpOpEq, ownUplink), masquerade)
	return nil
}

// hostRules creates these rules, in the syntax of nft, with U = our uplink and the bridges of an older agent
// that had them on the host; bth* = the bridges of all agents; inner = the source address of the
// kernels' packets here:
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
	from, to, input := m.guard(b)
	input(udpTo(known.listens), family(unix.NFPROTO_IPV6), drop)
	input(udpTo(known.listens), from4(known.agents, false), drop)

	inner := netip.PrefixFrom(m.inner(), 32)
	forward := b.filter("forward", nftables.ChainHookForward)
	forward(from, family(unix.NFPROTO_IPV6), drop)
	forward(from, notNetwork(ipSource, inner), drop)
	forward(from, network(ipDestination, netlist.LinkLocal), drop)
	forward(from, name(expr.MetaKeyOIFNAME, expr.CmpOpEq, bridgePrefix), drop)
	forward(name(expr.MetaKeyIIFNAME, expr.CmpOpEq, bridgePrefix), udpTo(known.ports), drop)
	forward(to, unknown(), drop)

	nat := b.nat("postrouting")
	nat(network(ipSource, inner), name(expr.MetaKeyOIFNAME, expr.CmpOpNeq, bridgePrefix), masquerade)
	return nil
}

// guard blocks packets between kernels and the namespace itself. It returns the matches of packets
// from and to kernels, and the chain of incoming packets.
func (m *Manager) guard(b *builder) (from, to []expr.Any, input rule) {
	from = name(expr.MetaKeyIIFNAME, expr.CmpOpEq, m.bridges())
	to = name(expr.MetaKeyOIFNAME, expr.CmpOpEq, m.bridges())
	input = b.filter("input", nftables.ChainHookInput)
	input(from, drop)
	b.filter("output", nftables.ChainHookOutput)(to, unknown(), drop)
	return from, to, input
}

// builder adds sets, chains and rules to a table in one transaction.
type builder struct {
	*nftables.Conn
	table *nftables.Table
}

func (b *builder) sets(list []set) error {
	for _, s := range list {
		if err := b.AddSet(s.Set, nil); err != nil {
			return err
		}
		if err := s.fill(b.Conn); err != nil {
			return err
		}
	}
	return nil
}

// rule appends a rule, which consists of parts, to a chain.
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

// Verdicts.
var (
	accept     = []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	drop       = []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	masquerade = []expr.Any{&expr.Masq{}}
)

// The second and third word of register 1, for the fields of a key.
const (
	second = unix.NFT_REG32_01
	third  = unix.NFT_REG32_02
)

// listOf loads the number of the list of networks that the kernels of a bridge can reach. It
// matches no packet from other links.
func listOf(lists set) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 2},
		&expr.Lookup{SourceRegister: 2, DestRegister: 1, IsDestRegSet: true, SetName: lists.Name, SetID: lists.ID},
	}
}

const dnsPort = 53

// ipPayload loads an address of the IPv4 header; portPayload loads the destination port of TCP or
// UDP.
func ipPayload(offset, register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4}
}

func portPayload(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}
}

// transport matches packets of one protocol over IP.
func transport(proto byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{proto}},
	}
}

func lookup(s set) expr.Any {
	return &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID}
}

// name compares the beginning of an interface name: data that is shorter than the register is a
// prefix.
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

// network matches IPv4 packets with an address of a network; notNetwork matches those with any
// other address.
func network(offset uint32, p netip.Prefix) []expr.Any    { return compare(offset, expr.CmpOpEq, p) }
func notNetwork(offset uint32, p netip.Prefix) []expr.Any { return compare(offset, expr.CmpOpNeq, p) }

func compare(offset uint32, op expr.CmpOp, p netip.Prefix) []expr.Any {
	base := p.Masked().Addr().As4()
	mask := ^uint32(0) << (32 - p.Bits())
	return append(family(unix.NFPROTO_IPV4),
		ipPayload(offset, 1),
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: 1, Data: base[:]},
	)
}

// unknown matches packets of connections that the kernel did not open.
func unknown() []expr.Any {
	known := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)},
	}
}
