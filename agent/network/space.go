package network

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// space is a network namespace that the agent uses: the host's or its own.
type space struct {
	*netlink.Handle
	ns netns.NsHandle
}

// hostSpace returns the namespace of the calling thread.
func hostSpace() (*space, error) {
	ns, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return openSpace(ns)
}

// mountedSpace returns the namespace that is mounted at a path.
func mountedSpace(path string) (*space, error) {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return openSpace(ns)
}

func openSpace(ns netns.NsHandle) (*space, error) {
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open netlink: %w", err), ns.Close())
	}
	return &space{h, ns}, nil
}

// Close closes the handle. The namespace exists as long as it is mounted.
func (s *space) Close() error {
	s.Handle.Close()
	return s.ns.Close()
}

// run calls f on a thread in the namespace.
func (s *space) run(f func() error) error {
	return inNamespace(func() error { return unix.Setns(int(s.ns), unix.CLONE_NEWNET) }, f)
}

// firewall starts an nftables transaction in the namespace.
func (s *space) firewall() (*nftables.Conn, error) {
	return nftables.New(nftables.WithNetNSFd(int(s.ns)))
}

// forward enables forwarding of IPv4 packets. If it is enabled already, the setting may be
// read-only.
func (s *space) forward() error {
	const setting = "/proc/sys/net/ipv4/ip_forward"
	return s.run(func() error {
		if is, err := os.ReadFile(setting); err == nil && len(is) > 0 && is[0] == '1' {
			return nil
		}
		return os.WriteFile(setting, []byte("1"), 0)
	})
}

// withoutIPv6 disables IPv6 on a link, so that no second set of rules is needed. A system without
// IPv6 has no such file.
func (s *space) withoutIPv6(link string) {
	_ = s.run(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/"+link+"/disable_ipv6", []byte("1"), 0)
	})
}

// remove removes a link if it exists.
func (s *space) remove(name string) error {
	link, err := s.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if err := s.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
