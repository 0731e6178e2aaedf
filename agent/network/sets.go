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

// set is one of nftables with what is in it. Sets change with the sessions.
type set struct {
	*nftables.Set
	elements []nftables.SetElement
}

// ownSets are what the firewall of the agent's namespace knows.
type ownSets struct {
	subnets set // of kernels here
}

func (s ownSets) all() []set { return []set{s.subnets} }

func (m *Manager) ownSets() ownSets {
	subnets := []netip.Prefix{m.cfg.Subnet}
	for _, seg := range m.sessions {
		if seg.overlay != nil {
			subnets = append(subnets, seg.subnet)
		}
	}
	s := ownSets{subnets: set{m.set("subnets", nftables.TypeIPAddr), intervals(subnets)}}
	s.subnets.Interval = true
	return s
}

// hostSets are what that of the host knows of the agents that sessions here lie
// on: packets between agents leave and arrive there.
type hostSets struct {
	agents  set // addresses of agents that may send to listens
	listens set // UDP ports where it takes packets of overlays; without any they are others'
	ports   set // and where others do: containers send nothing to them
}

func (s hostSets) all() []set { return []set{s.agents, s.listens, s.ports} }

func (m *Manager) hostSets() hostSets {
	agents, listens, ports := map[netip.Addr]bool{}, map[uint16]bool{}, map[uint16]bool{DefaultPort: true}
	if m.cfg.Endpoint.IsValid() {
		ports[m.cfg.Endpoint.Port()] = true
	}
	for _, seg := range m.sessions {
		if seg.overlay == nil {
			continue
		}
		listens[seg.overlay.Local.Port()] = true
		for _, p := range seg.overlay.Peers {
			agents[p.Endpoint.Addr()] = true
			ports[p.Endpoint.Port()] = true
		}
	}
	maps.Copy(ports, listens)
	s := hostSets{
		agents:  set{Set: m.set("agents", nftables.TypeIPAddr)},
		listens: set{m.set("listens", nftables.TypeInetService), portsOf(listens)},
		ports:   set{m.set("ports", nftables.TypeInetService), portsOf(ports)},
	}
	for a := range agents {
		s.agents.elements = append(s.agents.elements, nftables.SetElement{Key: a.AsSlice()})
	}
	return s
}

func (m *Manager) set(name string, of nftables.SetDatatype) *nftables.Set {
	return &nftables.Set{Table: m.table(), Name: name, KeyType: of}
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
	for _, side := range []struct {
		*space
		sets []set
	}{{m.own, m.ownSets().all()}, {m.host, m.hostSets().all()}} {
		c, err := side.firewall()
		if err != nil {
			return err
		}
		for _, s := range side.sets {
			c.FlushSet(s.Set)
			if len(s.elements) == 0 {
				continue
			}
			if err := c.SetAddElements(s.Set, s.elements); err != nil {
				return err
			}
		}
		if err := c.Flush(); err != nil {
			return err
		}
	}
	return nil
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
func from4(list set, among bool) []expr.Any { return among4(ipSource, list, among) }

// to4 matches IPv4 packets to one of some addresses.
func to4(list set) []expr.Any { return among4(ipDestination, list, true) }

func among4(offset uint32, list set, among bool) []expr.Any {
	return append(family(unix.NFPROTO_IPV4),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Lookup{SourceRegister: 1, SetName: list.Name, SetID: list.ID, Invert: !among},
	)
}
