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
