package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
)

// Reserve chooses an address. The only change on the host is the file that claims the subnet among
// the host's agents.
func (m *Manager) Reserve(key, session string) (Attachment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seg, ok := m.sessions[session]
	if !ok {
		subnet, err := m.claim()
		if err != nil {
			return Attachment{}, err
		}
		seg = &segment{subnet: subnet, used: map[netip.Addr]string{}}
		m.sessions[session] = seg
	}
	if seg.overlay != nil {
		return Attachment{}, fmt.Errorf("session %s still has a network over several nodes: %w", session, errdefs.ErrFailedPrecondition)
	}
	first := number(seg.subnet.Addr())
	last := first + 1<<(32-sessionBits) - 1
	for n := first + 2; n < last; n++ {
		if a := address(n); seg.used[a] == "" {
			seg.used[a] = key
			return Attachment{Key: key, Session: session, Subnet: seg.subnet, Address: a}, nil
		}
	}
	return Attachment{}, fmt.Errorf("session %s has no address left on this node: %w", session, errdefs.ErrResourceExhausted)
}

// Adopt reserves the addresses of an attachment from a record.
func (m *Manager) Adopt(a Attachment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.Overlay != nil {
		if err := a.check(); err != nil {
			return err
		}
		return m.admit(a)
	}
	if !m.cfg.Subnet.Contains(a.Subnet.Addr()) {
		// The configured subnet has changed, so the derived names would differ.
		return fmt.Errorf("address %s is not in subnet %s: %w", a.Address, m.cfg.Subnet, errdefs.ErrFailedPrecondition)
	}
	seg, ok := m.sessions[a.Session]
	if !ok {
		if !m.note(a.Subnet) {
			return fmt.Errorf("subnet %s now belongs to another agent: %w", a.Subnet, errdefs.ErrFailedPrecondition)
		}
		seg = &segment{subnet: a.Subnet, used: map[netip.Addr]string{}}
		m.sessions[a.Session] = seg
	}
	seg.allow = a.Allow
	if seg.subnet != a.Subnet || seg.overlay != nil || (seg.used[a.Address] != "" && seg.used[a.Address] != a.Key) {
		return fmt.Errorf("address %s of session %s is taken: %w", a.Address, a.Session, errdefs.ErrFailedPrecondition)
	}
	seg.used[a.Address] = a.Key
	return nil
}

// release frees an address and reports whether the session has no others.
func (m *Manager) release(a Attachment) (*segment, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seg, ok := m.sessions[a.Session]
	if !ok {
		return nil, true
	}
	if seg.used[a.Address] == a.Key {
		delete(seg.used, a.Address)
	}
	return seg, len(seg.used) == 0
}

// claim finds a subnet that neither this agent, another agent nor the host uses.
func (m *Manager) claim() (netip.Prefix, error) {
	taken, err := m.hostNetworks(func(int) bool { return true })
	if err != nil {
		return netip.Prefix{}, err
	}
	for _, seg := range m.sessions {
		taken = append(taken, seg.subnet)
	}
	base := number(m.cfg.Subnet.Addr())
	count := uint32(1) << (sessionBits - m.cfg.Subnet.Bits())
	for i := range count {
		subnet := netip.PrefixFrom(address(base+i<<(32-sessionBits)), sessionBits)
		if overlapping(subnet, taken) < 0 && m.note(subnet) {
			return subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("subnet %s is used up: %w", m.cfg.Subnet, errdefs.ErrResourceExhausted)
}

// hostNetworks returns the networks of the host's addresses, on the links for which counts returns
// true.
func (m *Manager) hostNetworks(counts func(link int) bool) ([]netip.Prefix, error) {
	addrs, err := addresses(m.host.Handle, nil)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP.To4())
		if !ok || !counts(a.LinkIndex) {
			continue
		}
		ones, _ := a.Mask.Size()
		out = append(out, netip.PrefixFrom(ip, ones).Masked())
	}
	return out, nil
}

// bridgeIndexes returns the uplinks of all agents, and the bridges of agents that have them on the
// host.
func (m *Manager) bridgeIndexes() (map[int]bool, error) {
	list, err := links(m.host.Handle)
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for _, l := range list {
		if strings.HasPrefix(l.Attrs().Name, bridgePrefix) {
			found[l.Attrs().Index] = true
		}
	}
	return found, nil
}

// overlapping returns the index of the first network that shares addresses with p, or -1.
func overlapping(p netip.Prefix, list []netip.Prefix) int {
	return slices.IndexFunc(list, p.Overlaps)
}

// note writes the file that claims a subnet. It reports false if another agent has claimed it.
func (m *Manager) note(subnet netip.Prefix) bool {
	path := m.claimPath(subnet)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		owner, err := os.ReadFile(path)
		return err == nil && string(owner) == m.cfg.Agent
	}
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.WriteString(m.cfg.Agent)
	return err == nil
}

func (m *Manager) unnote(subnet netip.Prefix) {
	path := m.claimPath(subnet)
	if owner, err := os.ReadFile(path); err == nil && string(owner) == m.cfg.Agent {
		_ = os.Remove(path)
	}
}

func (m *Manager) claimPath(subnet netip.Prefix) string {
	return filepath.Join(m.cfg.Claims, strings.ReplaceAll(subnet.String(), "/", "_"))
}
