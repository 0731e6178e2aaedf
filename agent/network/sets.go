package network

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/netlist"
)

// set is an nftables set with its elements. Sets change with the sessions.
type set struct {
	*nftables.Set
	elements []nftables.SetElement
}

// fill adds the elements in portions, because a message has at most 64 KiB.
func (s set) fill(c *nftables.Conn) error {
	for part := range slices.Chunk(s.elements, 256) {
		if err := c.SetAddElements(s.Set, part); err != nil {
			return err
		}
	}
	return nil
}

// ownSets are the sets of the firewall in the agent's namespace.
type ownSets struct {
	subnets   set // of sessions here
	peers     set // pairs of links between which packets can pass
	resolvers set // DNS servers of kernels
	lists     set // number of the list of networks that the kernels of a bridge can reach
	open      set // the addresses of lists
	ports     set // the addresses of lists, with a TCP or UDP port
	denied    set // addresses that kernels cannot reach otherwise
}

func (s ownSets) all() []set {
	return []set{s.subnets, s.peers, s.resolvers, s.lists, s.open, s.ports, s.denied}
}

func (m *Manager) ownSets() ownSets {
	denied := slices.Concat(netlist.Private, m.cfg.Deny)
	var subnets []netip.Prefix
	s := ownSets{
		peers:     set{Set: m.set("peers", nftables.TypeIFName, nftables.TypeIFName)},
		resolvers: set{Set: m.set("resolvers", nftables.TypeIPAddr)},
		lists:     set{Set: m.set("lists", nftables.TypeIFName)},
		open:      set{Set: m.ranges("open", nftables.TypeMark, nftables.TypeIPAddr)},
		ports:     set{Set: m.ranges("ports", nftables.TypeMark, nftables.TypeIPAddr, nftables.TypeInetService)},
		denied:    set{m.ranges("denied", nftables.TypeIPAddr), intervals(denied)},
	}
	s.lists.IsMap, s.lists.DataType = true, nftables.TypeMark
	numbers := map[string][]byte{}
	for _, seg := range m.sessions {
		bridge := seg.bridge(m)
		// If the host passes bridge traffic through its IP filters, as Docker configures it, frames
		// within one bridge look like forwarded packets.
		s.peers.elements = append(s.peers.elements, nftables.SetElement{Key: append(ifname(bridge), ifname(bridge)...)})
		subnets = append(subnets, seg.subnet)
		allow := slices.Concat(m.cfg.Allow, seg.allow)
		if len(allow) == 0 {
			continue
		}
		list := strings.Join(netlist.Strings(allow), " ")
		if numbers[list] == nil { // sessions of one group share a list
			numbers[list] = binary.BigEndian.AppendUint32(nil, uint32(len(numbers)+1))
			s.allow(numbers[list], allow, denied)
		}
		s.lists.elements = append(s.lists.elements, nftables.SetElement{Key: ifname(bridge), Val: numbers[list]})
	}
	s.subnets = set{m.ranges("subnets", nftables.TypeIPAddr), intervals(subnets)}
	for a := range m.dnsServers() {
		s.resolvers.elements = append(s.resolvers.elements, nftables.SetElement{Key: a.AsSlice()})
	}
	return s
}

// allow adds the networks of a list.
func (s *ownSets) allow(list []byte, entries []netlist.Entry, denied []netip.Prefix) {
	for _, port := range netlist.Ports(entries) {
		into, tail := &s.open.elements, []byte(nil)
		if port != 0 {
			into, tail = &s.ports.elements, append(binary.BigEndian.AppendUint16(nil, port), 0, 0)
		}
		for _, r := range netlist.Open(entries, port, denied) {
			*into = append(*into, nftables.SetElement{
				Key: slices.Concat(list, r.First.AsSlice(), tail), KeyEnd: slices.Concat(list, r.Last.AsSlice(), tail),
			})
		}
	}
}

// ifname encodes the name of a link as a key of a set.
func ifname(name string) []byte {
	key := make([]byte, unix.IFNAMSIZ)
	copy(key, name)
	return key
}

// dnsServers returns the servers that kernels have in their resolv.conf: the present ones, and
// earlier ones since the agent started.
func (m *Manager) dnsServers() map[netip.Addr]bool {
	if m.cfg.Resolvers != nil {
		for _, a := range m.cfg.Resolvers() {
			if a.Is4() {
				m.resolvers[a] = true
			}
		}
	}
	return m.resolvers
}

// hostSets are the sets of the firewall in the host's namespace, in which packets between agents
// leave and arrive.
type hostSets struct {
	agents  set // addresses of agents that can send to listens
	listens set // UDP ports on which this agent receives overlay packets; empty if it has no overlay
	ports   set // UDP ports of other agents' overlays, to which containers must not send
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

// set creates a set whose keys are concatenations of fields.
func (m *Manager) set(name string, fields ...nftables.SetDatatype) *nftables.Set {
	s := &nftables.Set{Table: m.table(), Name: name, KeyType: fields[0]}
	if len(fields) > 1 {
		s.KeyType, s.Concatenation = nftables.MustConcatSetType(fields...), true
	}
	return s
}

// ranges creates a set whose elements are ranges of keys.
func (m *Manager) ranges(name string, fields ...nftables.SetDatatype) *nftables.Set {
	s := m.set(name, fields...)
	s.Interval = true
	return s
}

func portsOf(ports map[uint16]bool) (list []nftables.SetElement) {
	for p := range ports {
		list = append(list, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, p)})
	}
	return list
}

// intervals returns the elements of networks in a set of ranges. A range ends before the next
// element; a range that includes the last address has no end.
func intervals(networks []netip.Prefix) (list []nftables.SetElement) {
	for _, r := range netlist.Union(networks) {
		list = append(list, nftables.SetElement{Key: r.First.AsSlice()})
		if after := r.Last.Next(); after.IsValid() {
			list = append(list, nftables.SetElement{Key: after.AsSlice(), IntervalEnd: true})
		}
	}
	return list
}

// renew updates the sets. Those of the host are updated only if they change with a session.
func (m *Manager) renew(overlay bool) error {
	if err := refill(m.own, m.ownSets().all()); err != nil || !overlay {
		return err
	}
	return refill(m.host, m.hostSets().all())
}

func refill(in *space, sets []set) error {
	c, err := in.firewall()
	if err != nil {
		return err
	}
	for _, s := range sets {
		c.FlushSet(s.Set)
		if err := s.fill(c); err != nil {
			return err
		}
	}
	return c.Flush()
}

// udpTo matches packets to one of several UDP ports.
func udpTo(ports set) []expr.Any {
	return append(transport(unix.IPPROTO_UDP), portPayload(1), lookup(ports))
}

// from4 matches IPv4 packets whose source is in a set or, without among, is not in it.
func from4(list set, among bool) []expr.Any { return among4(ipSource, list, among) }

// to4 matches IPv4 packets whose destination is in a set.
func to4(list set) []expr.Any { return among4(ipDestination, list, true) }

func among4(offset uint32, list set, among bool) []expr.Any {
	return append(family(unix.NFPROTO_IPV4),
		ipPayload(offset, 1),
		&expr.Lookup{SourceRegister: 1, SetName: list.Name, SetID: list.ID, Invert: !among},
	)
}
