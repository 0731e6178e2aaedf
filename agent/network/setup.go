package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// setUp creates the uplink and both firewalls once per process, and moves sessions whose bridges
// are on the host into the agent's namespace.
func (m *Manager) setUp() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return nil
	}
	for _, step := range []func() error{m.connectOwn, m.own.forward, m.host.forward, m.wall, m.moveIn} {
		if err := step(); err != nil {
			return err
		}
	}
	m.ready = true
	return nil
}

// wall installs the agent's nftables tables in both namespaces. Each is replaced in one
// transaction, so that there is no moment without rules.
func (m *Manager) wall() error {
	for _, side := range []struct {
		*space
		rules func(*builder) error
	}{{m.own, m.ownRules}, {m.host, m.hostRules}} {
		c, err := side.firewall()
		if err != nil {
			return err
		}
		t := m.table()
		c.AddTable(t)
		c.DelTable(t)
		c.AddTable(t)
		if err := side.rules(&builder{Conn: c, table: t}); err != nil {
			return err
		}
		if err := c.Flush(); err != nil {
			return fmt.Errorf("set up firewall: %w", err)
		}
	}
	return nil
}

// unwall removes the host's table. The other one is removed with its namespace.
func (m *Manager) unwall() error {
	c, err := m.host.firewall()
	if err != nil {
		return err
	}
	c.AddTable(m.table())
	c.DelTable(m.table())
	return c.Flush()
}

// moveIn moves the sessions of an older agent, which had bridges on the host, into the agent's
// namespace: each veth moves to a bridge with the same IP and MAC addresses. Connections between
// kernels and with the agent survive; those to the outside break, because the host's address
// translation loses them.
func (m *Manager) moveIn() error {
	list, err := links(m.host.Handle)
	if err != nil {
		return err
	}
	there := map[string]netlink.Link{}
	for _, l := range list {
		if name := l.Attrs().Name; m.named(name) && name != m.uplink() {
			there[name] = l
		}
	}
	if len(there) == 0 {
		return nil
	}
	for session, seg := range m.sessions {
		if bridge := there[seg.bridge(m)]; bridge != nil {
			if err := m.moveSession(session, seg, bridge, there); err != nil {
				return fmt.Errorf("move session %s from the host's network: %w", session, err)
			}
		}
	}
	var errs []error
	for name := range there {
		errs = append(errs, m.host.remove(name))
	}
	return errors.Join(errs...)
}

func (m *Manager) moveSession(session string, seg *segment, bridge netlink.Link, there map[string]netlink.Link) error {
	seg.mu.Lock()
	defer seg.mu.Unlock()
	seg.card = bridge.Attrs().HardwareAddr
	if seg.overlay != nil { // two devices cannot have the same VNI and port
		if err := m.host.remove(m.tunnel(seg.overlay.VNI)); err != nil {
			return err
		}
	}
	for addr, key := range seg.used {
		a := Attachment{Key: key, Session: session, Subnet: seg.subnet, Address: addr, Overlay: seg.overlay}
		cable := there[m.veth(a)]
		if cable == nil {
			continue
		}
		index, err := m.ensureBridge(a, seg.card)
		if err != nil {
			return err
		}
		if err := m.host.LinkSetNsFd(cable, int(m.own.ns)); err != nil {
			return fmt.Errorf("move %s: %w", m.veth(a), err)
		}
		delete(there, m.veth(a))
		if err := m.join(a, index); err != nil {
			return err
		}
	}
	return nil
}

// Sweep creates the agent's uplink, and removes everything with our tag that was not adopted: the
// remains of an agent that was killed. It must be called after all attachments were adopted.
func (m *Manager) Sweep() error {
	if err := m.setUp(); err != nil {
		return fmt.Errorf("set up the agent's network: %w", err)
	}
	keep := map[string]bool{}
	m.mu.Lock()
	keep[netip.PrefixFrom(m.cable.Addr(), sessionBits).String()] = true
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
	list, err := links(m.own.Handle)
	if err != nil {
		return err
	}
	for _, link := range list {
		name := link.Attrs().Name
		if !keep[name] && m.named(name) {
			errs = append(errs, m.own.remove(name))
		}
	}
	errs = append(errs, m.sweepSpaces(keep))
	m.sweepClaims(keep)
	return errors.Join(errs...)
}

// named reports whether a link has a name of this agent.
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

// Close removes the agent's namespace, its uplink and the firewall if no kernel is left. Before
// Sweep it is not known whether there are kernels, so Close removes only a namespace that was just
// created.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.own == nil {
		return nil
	}
	var errs []error
	switch {
	case m.ready && len(m.sessions) == 0:
		errs = append(errs, m.unwall(), m.removeOwn())
	case !m.ready && m.pristine():
		errs = append(errs, m.removeOwn())
	default:
		errs = append(errs, m.own.Close())
	}
	m.own = nil
	return errors.Join(append(errs, m.host.Close())...)
}

// pristine reports whether the namespace contains no links of sessions.
func (m *Manager) pristine() bool {
	list, err := links(m.own.Handle)
	return err == nil && !slices.ContainsFunc(list, func(l netlink.Link) bool {
		return l.Attrs().Name == ownUplink || m.named(l.Attrs().Name)
	})
}
