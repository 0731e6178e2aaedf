package network

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
)

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
