package network

import (
	"errors"
	"fmt"

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
				return fmt.Errorf("take session %s over from the host's network: %w", session, err)
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
