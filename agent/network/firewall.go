package network

import (
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// linkLocal holds, among others, the address at which clouds hand out a
// machine's credentials.
var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

// wall puts the agent's own table in place, once for each process: a whole new
// one in one transaction, so that there is no moment without.
func (m *Manager) wall() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.walled {
		return nil
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := m.table()
	c.AddTable(t)
	c.DelTable(t)
	c.AddTable(t)
	peers := m.peers()
	if err := c.AddSet(peers, nil); err != nil {
		return err
	}
	for _, seg := range m.sessions {
		if err := c.SetAddElements(peers, []nftables.SetElement{pair(seg.bridge(m))}); err != nil {
			return err
		}
	}
	known := m.sets()
	for _, s := range known.all() {
		if err := c.AddSet(s.Set, s.elements); err != nil {
			return err
		}
	}
	m.rules(c, t, peers, known)
	if err := c.Flush(); err != nil {
		return err
	}
	m.walled = true
	return nil
}

func (m *Manager) unwall() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.AddTable(m.table())
	c.DelTable(m.table())
	return c.Flush()
}

// peer lets a bridge's own kernels talk, or no longer. Where the host has bridge
// traffic pass its IP filters (Docker does that), frames that stay on one
// bridge look like forwarded packets.
func (m *Manager) peer(bridge string, allow bool) error {
	c, err := nftables.New()
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

// rules in the words of nft, with B = our bridges, and sets as in sets.go:
//
//	input       iifname B drop
//	            udp dport @listens meta nfproto ipv6 drop
//	            udp dport @listens ip saddr != @agents drop
//	output      oifname B ct state != established,related drop
//	forward     iifname B meta nfproto ipv6 drop
//	            iifname B ip saddr != @subnets drop
//	            iifname B ip daddr 169.254.0.0/16 drop
//	            iifname . oifname @peers accept
//	            iifname B oifname "bth*" drop
//	            iifname "bth*" udp dport @ports drop
//	            oifname B ct state != established,related drop
//	postrouting ip saddr @subnets oifname != "bth*" masquerade
func (m *Manager) rules(c *nftables.Conn, t *nftables.Table, peers *nftables.Set, known sets) {
	from := name(expr.MetaKeyIIFNAME, expr.CmpOpEq, m.bridges())
	to := name(expr.MetaKeyOIFNAME, expr.CmpOpEq, m.bridges())
	drop := []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}

	chain := func(name string, hook *nftables.ChainHook, prio *nftables.ChainPriority, kind nftables.ChainType) func(...[]expr.Any) {
		policy := nftables.ChainPolicyAccept
		ch := c.AddChain(&nftables.Chain{Name: name, Table: t, Type: kind, Hooknum: hook, Priority: prio, Policy: &policy})
		return func(parts ...[]expr.Any) {
			var all []expr.Any
			for _, p := range parts {
				all = append(all, p...)
			}
			c.AddRule(&nftables.Rule{Table: t, Chain: ch, Exprs: all})
		}
	}

	input := chain("input", nftables.ChainHookInput, nftables.ChainPriorityFilter, nftables.ChainTypeFilter)
	input(from, drop)
	input(udpTo(known.listens), family(unix.NFPROTO_IPV6), drop)
	input(udpTo(known.listens), from4(known.agents, false), drop)

	output := chain("output", nftables.ChainHookOutput, nftables.ChainPriorityFilter, nftables.ChainTypeFilter)
	output(to, unknown(), drop)

	forward := chain("forward", nftables.ChainHookForward, nftables.ChainPriorityFilter, nftables.ChainTypeFilter)
	forward(from, family(unix.NFPROTO_IPV6), drop)
	forward(from, from4(known.subnets, false), drop)
	forward(from, network(ipDestination, expr.CmpOpEq, linkLocal), drop)
	forward([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 2},
		&expr.Lookup{SourceRegister: 1, SetName: peers.Name, SetID: peers.ID},
		&expr.Verdict{Kind: expr.VerdictAccept},
	})
	forward(from, name(expr.MetaKeyOIFNAME, expr.CmpOpEq, bridgePrefix), drop)
	forward(name(expr.MetaKeyIIFNAME, expr.CmpOpEq, bridgePrefix), udpTo(known.ports), drop)
	forward(to, unknown(), drop)

	nat := chain("postrouting", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, nftables.ChainTypeNAT)
	nat(from4(known.subnets, true), name(expr.MetaKeyOIFNAME, expr.CmpOpNeq, bridgePrefix), []expr.Any{&expr.Masq{}})
}

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

func network(offset uint32, op expr.CmpOp, p netip.Prefix) []expr.Any {
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
