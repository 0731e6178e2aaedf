package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/containerd/errdefs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Create creates the kernel's namespace with only loopback, so that a container can be created in
// it while Connect is running.
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

// Connect connects the namespace to the session's bridge. It can be repeated, and completes a call
// that was interrupted.
func (m *Manager) Connect(_ context.Context, a Attachment) error {
	if err := m.setUp(); err != nil {
		return fmt.Errorf("set up the agent's network: %w", err)
	}
	ns, err := netns.GetFromPath(m.Path(a))
	if err != nil {
		return fmt.Errorf("open network namespace of %s: %w", a.Key, err)
	}
	defer ns.Close()
	seg, err := m.admitted(a)
	if err != nil {
		return err
	}
	seg.mu.Lock()
	defer seg.mu.Unlock()
	index, err := m.ensureBridge(a, seg.card)
	if err != nil {
		return err
	}
	if err := m.plug(a, index, ns); err != nil {
		return fmt.Errorf("connect %s to its bridge: %w", a.Key, err)
	}
	return nil
}

// admitted returns the segment of the attachment's session after its rules were added to the
// firewall.
func (m *Manager) admitted(a Attachment) (*segment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seg := m.sessions[a.Session]
	if seg == nil {
		return nil, fmt.Errorf("network of %s was removed", a.Key)
	}
	seg.allow = a.Allow // the same for all kernels of the session
	if err := m.renew(a.Overlay != nil); err != nil {
		return nil, fmt.Errorf("add the session's network to the firewall: %w", err)
	}
	return seg, nil
}

func (m *Manager) ensureBridge(a Attachment, card net.HardwareAddr) (index int, err error) {
	name := m.bridge(a.Subnet, a.Overlay)
	if link, err := m.own.LinkByName(name); err == nil && link.Attrs().Flags&net.FlagUp != 0 {
		return link.Attrs().Index, nil // this is set by the last step
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = name, card
	bits := a.Subnet.Bits()
	if a.Overlay != nil {
		// The gateway has the same address on every agent, so it belongs to no peer. Only the local
		// kernels are routed to the bridge: see join.
		attrs.MTU, attrs.HardwareAddr, bits = a.Overlay.MTU, hardware(a.Gateway()), 32
	}
	if err := m.own.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, fmt.Errorf("add bridge %s: %w", name, err)
	}
	m.own.withoutIPv6(name)
	link, err := m.own.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find bridge %s: %w", name, err)
	}
	if err := m.own.AddrReplace(link, &netlink.Addr{IPNet: ipNet(a.Gateway(), bits)}); err != nil {
		return 0, fmt.Errorf("address of bridge %s: %w", name, err)
	}
	if a.Overlay != nil {
		if err := m.extend(a.Overlay, link.Attrs().Index); err != nil {
			return 0, err
		}
	}
	if err := m.own.LinkSetUp(link); err != nil {
		return 0, fmt.Errorf("bring up bridge %s: %w", name, err)
	}
	return link.Attrs().Index, nil
}

// plug creates a veth pair: one end on the bridge, the other, eth0, in the namespace.
func (m *Manager) plug(a Attachment, bridge int, ns netns.NsHandle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = m.veth(a)
	if a.Overlay != nil {
		attrs.MTU = a.Overlay.MTU
	}
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(ns))}
	if a.Overlay != nil {
		veth.PeerMTU, veth.PeerHardwareAddr = uint32(a.Overlay.MTU), hardware(a.Address)
	}
	err := m.own.LinkAdd(veth)
	if errors.Is(err, unix.EEXIST) { // left by an interrupted Connect
		if err := m.own.remove(attrs.Name); err != nil {
			return err
		}
		err = m.own.LinkAdd(veth)
	}
	if err != nil {
		return fmt.Errorf("add %s: %w", attrs.Name, err)
	}
	if err := m.join(a, bridge); err != nil {
		return err
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

// join connects the host end of the veth pair to the bridge.
func (m *Manager) join(a Attachment, bridge int) error {
	link, err := m.own.LinkByName(m.veth(a))
	if err != nil {
		return err
	}
	if err := m.own.LinkSetMasterByIndex(link, bridge); err != nil {
		return err
	}
	if err := m.own.LinkSetUp(link); err != nil || a.Overlay == nil {
		return err
	}
	way := &netlink.Route{LinkIndex: bridge, Dst: ipNet(a.Address, 32), Scope: netlink.SCOPE_LINK}
	if err := m.own.RouteReplace(way); err != nil {
		return fmt.Errorf("route to %s: %w", a.Address, err)
	}
	return nil
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, 32)}
}

// Remove undoes Create and Connect and frees the address. It can be repeated, also if neither was
// called.
func (m *Manager) Remove(a Attachment) error {
	own := m.opened()
	if a.Key == "" || own == nil {
		return nil
	}
	var errs []error
	if err := own.remove(m.veth(a)); err != nil {
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
	// Another kernel of the session may have been added in the meantime.
	if len(seg.used) > 0 || m.sessions[a.Session] != seg {
		return nil
	}
	seg.mu.Lock()
	defer seg.mu.Unlock()
	if seg.overlay != nil {
		if err := m.own.remove(m.tunnel(seg.overlay.VNI)); err != nil {
			return err
		}
	}
	if err := m.own.remove(seg.bridge(m)); err != nil {
		return err
	}
	delete(m.sessions, a.Session)
	if seg.overlay == nil {
		m.unnote(seg.subnet)
	}
	if !m.ready {
		return nil
	}
	return m.renew(seg.overlay != nil)
}

// Traffic returns the bytes that the kernel has received and sent.
func (m *Manager) Traffic(a Attachment) (received, sent uint64, err error) {
	own := m.opened()
	if own == nil {
		return 0, 0, fmt.Errorf("traffic of %s: %w", a.Key, errdefs.ErrUnavailable)
	}
	link, err := own.LinkByName(m.veth(a))
	if err != nil {
		return 0, 0, fmt.Errorf("traffic of %s: %w", a.Key, err)
	}
	s := link.Attrs().Statistics
	// The kernel receives the bytes that this end sends.
	return s.TxBytes, s.RxBytes, nil
}
