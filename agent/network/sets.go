package network

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// sets are what the firewall knows of the sessions that are here, and of the
// agents that they lie on. They change with the sessions.
type sets struct {
	subnets set // of kernels here
	agents  set // addresses of agents that may send to listens
	listens set // UDP ports where it takes packets of overlays; without any they are others'
	ports   set // and where others do: containers send nothing to them
}

type set struct {
	*nftables.Set
	elements []nftables.SetElement
}

func (s sets) all() []set { return []set{s.subnets, s.agents, s.listens, s.ports} }

// sets are as the sessions are now.
func (m *Manager) sets() sets {
	subnets := []netip.Prefix{m.cfg.Subnet}
	agents, listens, ports := map[netip.Addr]bool{}, map[uint16]bool{}, map[uint16]bool{DefaultPort: true}
	if m.cfg.Endpoint.IsValid() {
		ports[m.cfg.Endpoint.Port()] = true
	}
	for _, seg := range m.sessions {
		if seg.overlay == nil {
			continue
		}
		subnets = append(subnets, seg.subnet)
		listens[seg.overlay.Local.Port()] = true
		for _, p := range seg.overlay.Peers {
			agents[p.Endpoint.Addr()] = true
			ports[p.Endpoint.Port()] = true
		}
	}
	maps.Copy(ports, listens)
	one := func(name string, of nftables.SetDatatype) *nftables.Set {
		return &nftables.Set{Table: m.table(), Name: name, KeyType: of}
	}
	s := sets{
		subnets: set{one("subnets", nftables.TypeIPAddr), intervals(subnets)},
		agents:  set{Set: one("agents", nftables.TypeIPAddr)},
		listens: set{one("listens", nftables.TypeInetService), portsOf(listens)},
		ports:   set{one("ports", nftables.TypeInetService), portsOf(ports)},
	}
	s.subnets.Interval = true
	for a := range agents {
		s.agents.elements = append(s.agents.elements, nftables.SetElement{Key: a.AsSlice()})
	}
	return s
}

func portsOf(ports map[uint16]bool) (list []nftables.SetElement) {
	for p := range ports {
		list = append(list, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, p)})
	}
	return list
}

// intervals are networks that do not overlap; where one begins where another
// ends, they are one.
func intervals(networks []netip.Prefix) (list []nftables.SetElement) {
	slices.SortFunc(networks, func(a, b netip.Prefix) int { return cmp.Compare(number(a.Addr()), number(b.Addr())) })
	key := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	end := uint32(0)
	for i, p := range networks {
		first := number(p.Addr())
		if i > 0 && first != end {
			list = append(list, nftables.SetElement{Key: key(end), IntervalEnd: true})
		}
		if i == 0 || first != end {
			list = append(list, nftables.SetElement{Key: key(first)})
		}
		end = first + 1<<(32-p.Bits())
	}
	return append(list, nftables.SetElement{Key: key(end), IntervalEnd: true})
}

// renew brings the sets up to date.
func (m *Manager) renew() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refill()
}

func (m *Manager) refill() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	for _, s := range m.sets().all() {
		c.FlushSet(s.Set)
		if len(s.elements) == 0 {
			continue
		}
		if err := c.SetAddElements(s.Set, s.elements); err != nil {
			return err
		}
	}
	return c.Flush()
}

// udpTo matches what is for one of some UDP ports.
func udpTo(ports set) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: 1, SetName: ports.Name, SetID: ports.ID},
	}
}

// from4 matches IPv4 packets from one of some addresses, or from any other.
func from4(list set, among bool) []expr.Any {
	return append(family(unix.NFPROTO_IPV4),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: ipSource, Len: 4},
		&expr.Lookup{SourceRegister: 1, SetName: list.Name, SetID: list.ID, Invert: !among},
	)
}
