package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
)

// Overlay connects the bridge of a session to those on other agents by a VXLAN device with a static
// list of the session's kernels and without learning. The device answers ARP requests for kernels
// on other agents, and drops frames for unknown addresses and broadcasts.
type Overlay struct {
	VNI   uint32         `json:"vni"`   // six hexadecimal digits: no bridge without an overlay has that many in its name
	MTU   int            `json:"mtu"`   // of the kernels
	Local netip.AddrPort `json:"local"` // where this agent receives packets of the overlay; set by Join
	Peers []Peer         `json:"peers"` // the kernels on other agents
}

// Peer is a kernel on another agent.
type Peer struct {
	Address  netip.Addr     `json:"address"`
	Endpoint netip.AddrPort `json:"endpoint"` // of its agent
}

// Join reserves the address that the manager chose for a kernel of a session that spans several
// agents. It does not change the host.
func (m *Manager) Join(a Attachment) (Attachment, error) {
	if m.off != "" {
		return Attachment{}, fmt.Errorf("this node has no network in common with other nodes: %s: %w", m.off, errdefs.ErrFailedPrecondition)
	}
	if err := a.check(); err != nil {
		return Attachment{}, err
	}
	host, err := m.foreignNetworks()
	if err != nil {
		return Attachment{}, err
	}
	if i := overlapping(a.Subnet, host); i >= 0 {
		return Attachment{}, fmt.Errorf("subnet %s of the session overlaps %s, which this node uses: %w", a.Subnet, host[i], errdefs.ErrFailedPrecondition)
	}
	o := *a.Overlay
	o.Local = m.cfg.Endpoint
	a.Overlay = &o
	m.mu.Lock()
	defer m.mu.Unlock()
	return a, m.admit(a)
}

// check returns InvalidArgument for values from which no valid names or rules can be created.
func (a Attachment) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
	}
	o := a.Overlay
	member := func(x netip.Addr) bool {
		return x.Is4() && a.Subnet.Contains(x) && x != a.Gateway() && x != a.Subnet.Addr()
	}
	switch {
	case o == nil || o.VNI < agentpb.MinVNI || o.VNI > agentpb.MaxVNI:
		return bad("network has no vni between %d and %d", agentpb.MinVNI, agentpb.MaxVNI)
	case o.MTU < minMTU || o.MTU > maxMTU:
		return bad("network.mtu %d is not between %d and %d", o.MTU, minMTU, maxMTU)
	case !a.Subnet.Addr().Is4() || a.Subnet != a.Subnet.Masked() || a.Subnet.Bits() < 8 || a.Subnet.Bits() > 30:
		return bad("network.subnet %s is not an IPv4 network between /8 and /30", a.Subnet)
	case !member(a.Address):
		return bad("network.address %s is not the address of a kernel in %s", a.Address, a.Subnet)
	}
	for i, p := range o.Peers {
		if !member(p.Address) || p.Address == a.Address {
			return bad("network.peers[%d]: %s is not the address of another kernel in %s", i, p.Address, a.Subnet)
		}
		if !p.Endpoint.Addr().Is4() || p.Endpoint.Port() == 0 {
			return bad("network.peers[%d]: endpoint %s is not an IPv4 address with a port", i, p.Endpoint)
		}
	}
	return nil
}

// admit adds an attachment with an overlay to its session.
func (m *Manager) admit(a Attachment) error {
	taken := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, errdefs.ErrFailedPrecondition)...)
	}
	if m.cfg.Subnet.Overlaps(a.Subnet) {
		return taken("subnet %s of the session overlaps %s, which this node uses for sessions of its own", a.Subnet, m.cfg.Subnet)
	}
	seg := m.sessions[a.Session]
	if seg == nil {
		for session, other := range m.sessions {
			if other.subnet.Overlaps(a.Subnet) || other.overlay != nil && other.overlay.VNI == a.Overlay.VNI {
				return taken("network %d, %s is still that of session %s on this node", a.Overlay.VNI, a.Subnet, session)
			}
		}
		seg = &segment{subnet: a.Subnet, overlay: a.Overlay, used: map[netip.Addr]string{}}
		m.sessions[a.Session] = seg
	}
	if seg.overlay == nil || seg.overlay.VNI != a.Overlay.VNI || seg.subnet != a.Subnet {
		return taken("session %s still has another network, %s, on this node", a.Session, seg.subnet)
	}
	if key := seg.used[a.Address]; key != "" && key != a.Key {
		return taken("address %s of session %s is taken", a.Address, a.Session)
	}
	seg.used[a.Address], seg.allow = a.Key, a.Allow
	return nil
}

// foreignNetworks returns the networks of the host's addresses, except those of agents' bridges.
func (m *Manager) foreignNetworks() ([]netip.Prefix, error) {
	ours, err := m.bridgeIndexes()
	if err != nil {
		return nil, err
	}
	return m.hostNetworks(func(link int) bool { return !ours[link] })
}

// extend creates the VXLAN device on the session's bridge. An existing one was left by an
// interrupted attempt.
func (m *Manager) extend(o *Overlay, bridge int) error {
	name := m.tunnel(o.VNI)
	if err := m.own.remove(name); err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, o.MTU
	dev := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: int(o.VNI), Port: int(o.Local.Port()), Proxy: true}
	if m.isHere(o.Local.Addr()) { // otherwise the address is translated on the way
		dev.SrcAddr = o.Local.Addr().AsSlice()
	}
	if err := m.addTunnel(dev); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	m.own.withoutIPv6(name)
	link, err := m.own.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if err := m.own.LinkSetMasterByIndex(link, bridge); err != nil {
		return fmt.Errorf("put %s on its bridge: %w", name, err)
	}
	for _, p := range o.Peers {
		if err := m.own.run(func() error { return m.direct(link.Attrs().Index, p) }); err != nil {
			return fmt.Errorf("add to %s the peer %s at %s: %w", name, p.Address, p.Endpoint, err)
		}
	}
	if err := m.own.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return nil
}

// addTunnel creates a device in the agent's namespace whose socket is in the host's, so that its
// packets to other agents use the host's network. The host's list of links does not change.
func (m *Manager) addTunnel(dev *netlink.Vxlan) error {
	dev.Namespace = netlink.NsFd(int(m.own.ns))
	return m.host.LinkAdd(dev)
}

// direct adds a peer to a device: the endpoint of its agent, and the answer to ARP requests.
func (m *Manager) direct(link int, p Peer) error {
	const port = 6 // NDA_PORT
	r := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	r.AddData(&netlink.Ndmsg{Family: unix.AF_BRIDGE, Index: uint32(link), State: netlink.NUD_PERMANENT | netlink.NUD_NOARP, Flags: netlink.NTF_SELF})
	r.AddData(nl.NewRtAttr(netlink.NDA_LLADDR, hardware(p.Address)))
	r.AddData(nl.NewRtAttr(netlink.NDA_DST, p.Endpoint.Addr().AsSlice()))
	r.AddData(nl.NewRtAttr(port, []byte{byte(p.Endpoint.Port() >> 8), byte(p.Endpoint.Port())}))
	if _, err := r.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return err
	}
	return m.own.NeighSet(&netlink.Neigh{
		LinkIndex: link, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: p.Address.AsSlice(), HardwareAddr: hardware(p.Address),
	})
}

// hardware returns the MAC address of a kernel's interface in a session with an overlay. It is
// derived from the IP address, so peers know it.
func hardware(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return append(net.HardwareAddr{0x02, 0xbe}, b[:]...)
}

// tunnel returns the name of an overlay's device.
func (m *Manager) tunnel(vni uint32) string { return fmt.Sprintf("%s%x", m.tunnels(), vni) }

// tryOverlay creates a device without peers to test whether the host supports it. Its VNI is never
// used by an overlay, and unlikely to be used by another agent's test.
func (m *Manager) tryOverlay() error {
	name := m.tunnels() + "try"
	err := m.own.remove(name)
	if err == nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		err = m.addTunnel(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1 + rand.IntN(agentpb.MinVNI-1), Port: int(m.cfg.Endpoint.Port()), Proxy: true})
		if errors.Is(err, unix.EOPNOTSUPP) {
			return errors.New("the kernel does not support vxlan")
		}
	}
	if err != nil {
		return fmt.Errorf("the kernel cannot create a vxlan device: %w", err)
	}
	link, err := m.own.LinkByName(name)
	if err == nil {
		err = m.own.LinkSetUp(link)
	}
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("UDP port %d is in use by another program", m.cfg.Endpoint.Port())
	}
	return errors.Join(err, m.own.remove(name))
}

// DefaultPort is the UDP port for overlay packets, which IANA has assigned to VXLAN.
const DefaultPort = 4789

// Limits of the packet size of kernels in an overlay, and the size of the headers around a packet:
// Ethernet, IPv4, UDP and VXLAN.
const (
	minMTU   = 576
	maxMTU   = 65535 - overhead
	overhead = 50
)

// Reach describes how kernels on other agents reach the kernels of this one.
type Reach struct {
	Endpoint netip.AddrPort
	MTU      int    // largest packet of a kernel
	Off      string // why they cannot
}

// Reach returns the endpoint for other agents.
func (m *Manager) Reach() Reach {
	if m.off != "" {
		return Reach{Off: m.off}
	}
	return Reach{Endpoint: m.cfg.Endpoint, MTU: m.underlay() - overhead}
}

// underlay returns the MTU between agents: that of the interface with the endpoint's address.
func (m *Manager) underlay() int {
	list, err := links(m.host.Handle)
	if err != nil {
		return 1500
	}
	for _, l := range list {
		addrs, err := addresses(m.host.Handle, l)
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && ip == m.cfg.Endpoint.Addr() {
				return min(max(l.Attrs().MTU, minMTU+overhead), maxMTU+overhead)
			}
		}
	}
	return 1500 // address translation happens on the way
}

// isHere reports whether the host has an address.
func (m *Manager) isHere(a netip.Addr) bool {
	addrs, err := addresses(m.host.Handle, nil)
	if err != nil {
		return false
	}
	for _, x := range addrs {
		if ip, ok := netip.AddrFromSlice(x.IP.To4()); ok && ip == a {
			return true
		}
	}
	return false
}

// ParseEndpoint parses a setting: an address, a port or both. The default address is known, the
// default port is DefaultPort.
func ParseEndpoint(setting string, known netip.Addr) (netip.AddrPort, error) {
	host, port := setting, ""
	if i := strings.LastIndexByte(setting, ':'); i >= 0 {
		host, port = setting[:i], setting[i+1:]
	}
	addr, number := known, uint64(DefaultPort)
	var err error
	if host != "" {
		addr, err = netip.ParseAddr(host)
	}
	if err == nil && port != "" {
		number, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || number == 0 || addr.IsValid() && !addr.Is4() || addr.IsUnspecified() || addr.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("overlay endpoint %.80q is not off, an IPv4 address, :port or address:port: %w", setting, errdefs.ErrInvalidArgument)
	}
	return netip.AddrPortFrom(addr, uint16(number)), nil
}

// Known returns the local address of this host's route to one of the given hosts. If that is a
// loopback address, it returns the local address of the default route, and an invalid address if
// there is none.
func Known(towards ...string) netip.Addr {
	var found netip.Addr
	for _, to := range append(towards, "198.51.100.1:9") {
		c, err := net.Dial("udp4", to) // sends no packet
		if err != nil {
			continue
		}
		local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		c.Close()
		if !local.IsLoopback() {
			return local
		}
		found = local
	}
	return found
}
