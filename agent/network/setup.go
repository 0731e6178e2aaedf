package network

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// setUp makes the uplink and both firewalls, once for each process, and takes in
// sessions whose bridges are on the host.
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

// wall puts the agent's tables in place in both namespaces: each a whole new one
// in one transaction, so that there is no moment without.
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

// unwall removes the host's table; the other one goes with its namespace.
func (m *Manager) unwall() error {
	c, err := m.host.firewall()
	if err != nil {
		return err
	}
	c.AddTable(m.table())
	c.DelTable(m.table())
	return c.Flush()
}

// moveIn takes in the sessions of an agent that had bridges on the host: each
// cable's end goes over to a bridge with the same addresses, also the hardware's,
// in the agent's own namespace. Connections between kernels and with the agent
// stay; those to the world break, as the host's address translation forgets them.
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
	if seg.overlay != nil { // two devices cannot have one number and port
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
