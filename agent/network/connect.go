package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Create makes the kernel's namespace, with loopback up and nothing else, so
// that a container can be created in it while Connect still works.
func (m *Manager) Create(a Attachment) (path string, err error) {
	path = m.Path(a)
	if err := removeNamespace(path); err != nil {
		return "", err
	}
	if err := createNamespace(path); err != nil {
		return "", fmt.Errorf("create network namespace of %s: %w", a.Key, err)
	}
	return path, nil
}

// Connect joins the namespace to the session's bridge. It may be repeated, and
// takes the place of one that was interrupted.
func (m *Manager) Connect(_ context.Context, a Attachment) error {
	if err := m.wall(); err != nil {
		return fmt.Errorf("set up firewall: %w", err)
	}
	ns, err := netns.GetFromPath(m.Path(a))
	if err != nil {
		return fmt.Errorf("open network namespace of %s: %w", a.Key, err)
	}
	defer ns.Close()
	m.mu.Lock()
	seg := m.sessions[a.Session]
	m.mu.Unlock()
	if seg == nil {
		return fmt.Errorf("network of %s was given back", a.Key)
	}
	if a.Overlay != nil {
		if err := m.renew(); err != nil {
			return fmt.Errorf("tell the firewall of the session's network: %w", err)
		}
	}
	seg.mu.Lock()
	defer seg.mu.Unlock()
	index, err := m.ensureBridge(a)
	if err != nil {
		return err
	}
	if err := m.plug(a, index, ns); err != nil {
		return fmt.Errorf("connect %s to its bridge: %w", a.Key, err)
	}
	return nil
}

func (m *Manager) ensureBridge(a Attachment) (index int, err error) {
	name := m.bridge(a.Subnet, a.Overlay)
	if link, err := m.handle.LinkByName(name); err == nil && link.Attrs().Flags&net.FlagUp != 0 {
		return link.Attrs().Index, nil // that is the last step
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	bits := a.Subnet.Bits()
	if a.Overlay != nil {
		// The gateway is the same on every agent, so none is another's. Only the
		// kernels that are here are behind the bridge for the host: see plug.
		attrs.MTU, attrs.HardwareAddr, bits = a.Overlay.MTU, hardware(a.Gateway()), 32
	}
	if err := m.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, fmt.Errorf("add bridge %s: %w", name, err)
	}
	// Without IPv6 there is no second way in that needs guarding.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	link, err := m.handle.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find bridge %s: %w", name, err)
	}
	if err := m.peer(name, true); err != nil {
		return 0, fmt.Errorf("let kernels on %s talk: %w", name, err)
	}
	if err := m.handle.AddrReplace(link, &netlink.Addr{IPNet: ipNet(a.Gateway(), bits)}); err != nil {
		return 0, fmt.Errorf("address of bridge %s: %w", name, err)
	}
	if a.Overlay != nil {
		if err := m.extend(a.Overlay, link.Attrs().Index); err != nil {
			return 0, err
		}
	}
	if err := m.handle.LinkSetUp(link); err != nil {
		return 0, fmt.Errorf("bring up bridge %s: %w", name, err)
	}
	return link.Attrs().Index, nil
}

// plug makes the cable: one end on the bridge, the other, eth0, in the
// namespace.
func (m *Manager) plug(a Attachment, bridge int, ns netns.NsHandle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = m.veth(a), bridge
	if a.Overlay != nil {
		attrs.MTU = a.Overlay.MTU
	}
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(ns))}
	if a.Overlay != nil {
		veth.PeerMTU, veth.PeerHardwareAddr = uint32(a.Overlay.MTU), hardware(a.Address)
	}
	err := m.handle.LinkAdd(veth)
	if errors.Is(err, unix.EEXIST) { // of a Connect that did not come to its end
		if err := m.removeLink(attrs.Name); err != nil {
			return err
		}
		err = m.handle.LinkAdd(veth)
	}
	if err != nil {
		return fmt.Errorf("add %s: %w", attrs.Name, err)
	}
	link, err := m.handle.LinkByName(attrs.Name)
	if err != nil {
		return err
	}
	if err := m.handle.LinkSetUp(link); err != nil {
		return err
	}
	if a.Overlay != nil {
		way := &netlink.Route{LinkIndex: bridge, Dst: ipNet(a.Address, 32), Scope: netlink.SCOPE_LINK}
		if err := m.handle.RouteReplace(way); err != nil {
			return fmt.Errorf("route to %s: %w", a.Address, err)
		}
	}
	inside, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()
	eth0, err := inside.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := inside.AddrAdd(eth0, &netlink.Addr{IPNet: ipNet(a.Address, a.Subnet.Bits())}); err != nil {
		return err
	}
	if err := inside.LinkSetUp(eth0); err != nil {
		return err
	}
	return inside.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: a.Gateway().AsSlice()})
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, 32)}
}

// Remove undoes Create and Connect and gives the address back. It may be
// repeated, also for what was never made.
func (m *Manager) Remove(a Attachment) error {
	if a.Key == "" {
		return nil
	}
	var errs []error
	if err := m.removeLink(m.veth(a)); err != nil {
		errs = append(errs, err)
	}
	if err := removeNamespace(m.Path(a)); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("remove network of %s: %w", a.Key, errors.Join(errs...))
	}
	seg, empty := m.release(a)
	if seg == nil || !empty {
		return nil
	}
	return m.removeSession(a, seg)
}

func (m *Manager) removeSession(a Attachment, seg *segment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Another kernel of the session may have come meanwhile.
	if len(seg.used) > 0 || m.sessions[a.Session] != seg {
		return nil
	}
	seg.mu.Lock()
	defer seg.mu.Unlock()
	if seg.overlay != nil {
		if err := m.removeLink(m.tunnel(seg.overlay.VNI)); err != nil {
			return err
		}
	}
	if err := m.removeLink(seg.bridge(m)); err != nil {
		return err
	}
	delete(m.sessions, a.Session)
	if seg.overlay == nil {
		m.unnote(seg.subnet)
	}
	if !m.walled {
		return nil
	}
	// A name that no interface has lets nobody through; this is only tidiness.
	_ = m.peer(seg.bridge(m), false)
	if seg.overlay != nil {
		return m.refill()
	}
	return nil
}

func (m *Manager) removeLink(name string) error {
	link, err := m.handle.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if err := m.handle.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// Traffic returns bytes received and sent by the kernel.
func (m *Manager) Traffic(a Attachment) (received, sent uint64, err error) {
	link, err := m.handle.LinkByName(m.veth(a))
	if err != nil {
		return 0, 0, fmt.Errorf("traffic of %s: %w", a.Key, err)
	}
	s := link.Attrs().Statistics
	// What the host's end sends, the kernel's end receives.
	return s.TxBytes, s.RxBytes, nil
}

// Sweep removes whatever carries our tag and is not adopted: what an agent
// that was killed had no time for.
func (m *Manager) Sweep() error {
	keep := map[string]bool{}
	m.mu.Lock()
	for session, seg := range m.sessions {
		keep[seg.bridge(m)] = true
		keep[seg.subnet.String()] = true
		if seg.overlay != nil {
			keep[m.tunnel(seg.overlay.VNI)] = true
		}
		for addr, key := range seg.used {
			keep[m.veth(Attachment{Key: key, Session: session, Subnet: seg.subnet, Address: addr, Overlay: seg.overlay})] = true
			keep[key] = true
		}
	}
	m.mu.Unlock()
	var errs []error
	list, err := links(m.handle)
	if err != nil {
		return err
	}
	for _, link := range list {
		name := link.Attrs().Name
		if !keep[name] && m.named(name) {
			errs = append(errs, m.removeLink(name))
		}
	}
	spaces, err := os.ReadDir(m.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range spaces {
		if !keep[e.Name()] {
			errs = append(errs, removeNamespace(m.cfg.Dir+"/"+e.Name()))
		}
	}
	m.sweepClaims(keep)
	if len(keep) > 0 {
		errs = append(errs, m.wall()) // kernels are running: renew the rules now
	}
	return errors.Join(errs...)
}

// named tells whether an interface has a name of ours.
func (m *Manager) named(name string) bool {
	return slices.ContainsFunc([]string{m.bridges(), m.veths(), m.wires(), m.tunnels()}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

func (m *Manager) sweepClaims(keep map[string]bool) {
	claims, err := os.ReadDir(m.cfg.Claims)
	if err != nil {
		return
	}
	for _, e := range claims {
		subnet, err := netip.ParsePrefix(strings.ReplaceAll(e.Name(), "_", "/"))
		if err == nil && !keep[subnet.String()] {
			m.unnote(subnet)
		}
	}
}

// Close removes the firewall when no kernel is left, and lets go of netlink.
func (m *Manager) Close() error {
	defer m.handle.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sessions) > 0 || !m.walled {
		return nil
	}
	m.walled = false
	return m.unwall()
}
