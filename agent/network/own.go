package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownName is the mount of the agent's own namespace. Those of kernels are in the same directory,
// and their names do not begin with a dot.
const ownName = ".agent"

// uplinkBits is the prefix length of the network of the veth pair between the two namespaces, with
// one address for each.
const uplinkBits = 30

func (m *Manager) ownPath() string { return filepath.Join(m.cfg.Dir, ownName) }

// uplink returns the name of the veth on the host. It has the prefix of bridges, so that other
// agents of this host treat its packets as coming from containers.
func (m *Manager) uplink() string { return m.bridges() + "up" }

// inner returns the address of the agent's own namespace. On the host, it is the source of all
// packets of kernels.
func (m *Manager) inner() netip.Addr { return m.cable.Addr().Next().Next() }

// openOwn opens the agent's own namespace or creates it. A namespace of an earlier process of the
// agent is reused with everything in it.
func (m *Manager) openOwn() error {
	path := m.ownPath()
	if !isNamespace(path) { // after a reboot, the path is an empty file
		if err := removeNamespace(path); err != nil {
			return err
		}
		if err := m.host.run(func() error { return createNamespace(path) }); err != nil {
			return fmt.Errorf("create the agent's network namespace: %w", err)
		}
	}
	own, err := mountedSpace(path)
	if err != nil {
		return err
	}
	m.own = own
	return nil
}

// isNamespace reports whether a namespace is mounted at a path.
func isNamespace(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.NSFS_MAGIC
}

// connectOwn creates the uplink. This is the only change of the host's links, and happens once
// after a boot.
func (m *Manager) connectOwn() error {
	if m.adoptUplink() {
		return nil
	}
	if err := m.host.remove(m.uplink()); err != nil {
		return err
	}
	subnet, err := m.claim()
	if err != nil {
		return err
	}
	m.cable = netip.PrefixFrom(subnet.Addr(), uplinkBits)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = m.uplink()
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: ownUplink, PeerNamespace: netlink.NsFd(int(m.own.ns))}
	if err := m.host.LinkAdd(veth); err != nil {
		return fmt.Errorf("add %s: %w", attrs.Name, err)
	}
	m.host.withoutIPv6(attrs.Name)
	m.own.withoutIPv6(ownUplink)
	gateway := m.cable.Addr().Next()
	if err := address4(m.own, ownUplink, m.inner()); err != nil {
		return err
	}
	if err := address4(m.host, attrs.Name, gateway); err != nil { // must be last: see adoptUplink
		return err
	}
	return m.own.RouteReplace(&netlink.Route{Dst: ipNet(netip.IPv4Unspecified(), 0), Gw: gateway.AsSlice()})
}

// ownUplink is the name of the veth in the agent's own namespace. No link of a session has such a
// name.
const ownUplink = "uplink"

func address4(s *space, name string, a netip.Addr) error {
	link, err := s.LinkByName(name)
	if err == nil {
		err = s.AddrReplace(link, &netlink.Addr{IPNet: ipNet(a, uplinkBits)})
	}
	if err == nil {
		err = s.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("address %s of %s: %w", a, name, err)
	}
	return nil
}

// adoptUplink reuses the complete uplink of an earlier process of the agent.
func (m *Manager) adoptUplink() bool {
	link, err := m.host.LinkByName(m.uplink())
	if err != nil {
		return false
	}
	inside, err := m.own.LinkByName(ownUplink)
	if err != nil || inside.Attrs().ParentIndex != link.Attrs().Index {
		return false
	}
	list, err := addresses(m.host.Handle, link)
	if err != nil || len(list) != 1 {
		return false
	}
	first, ok := netip.AddrFromSlice(list[0].IP.To4())
	if !ok || !m.cfg.Subnet.Contains(first) {
		return false
	}
	cable := netip.PrefixFrom(first, uplinkBits).Masked()
	if !m.note(netip.PrefixFrom(cable.Addr(), sessionBits)) {
		return false
	}
	routes, err := dump("routes", func() ([]netlink.Route, error) { return m.own.RouteList(inside, netlink.FAMILY_V4) })
	for _, r := range routes {
		if err == nil && r.Gw.Equal(first.AsSlice()) {
			m.cable = cable
			return true
		}
	}
	return false
}

// removeOwn removes the namespace and its uplink.
func (m *Manager) removeOwn() error {
	err := m.host.remove(m.uplink())
	if m.cable.IsValid() {
		m.unnote(netip.PrefixFrom(m.cable.Addr(), sessionBits))
	}
	return errors.Join(err, m.own.Close(), removeNamespace(m.ownPath()))
}

// opened returns the agent's namespace, or nil after Close.
func (m *Manager) opened() *space {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

// sweepSpaces removes the namespaces of unknown kernels.
func (m *Manager) sweepSpaces(keep map[string]bool) error {
	spaces, err := os.ReadDir(m.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range spaces {
		if !keep[e.Name()] && e.Name() != ownName {
			errs = append(errs, removeNamespace(filepath.Join(m.cfg.Dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
