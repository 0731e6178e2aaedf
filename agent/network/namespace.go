package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// inNamespace runs f on a separate thread in another network namespace than the rest of the
// process. enter moves the thread to it.
func inNamespace(enter, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer home.Close()
		if err = enter(); err == nil {
			err = f()
		}
		// A thread that cannot return to its namespace stays locked and ends with this goroutine.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

func createNamespace(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	f.Close()
	enter := func() error { return unix.Unshare(unix.CLONE_NEWNET) }
	err = inNamespace(enter, func() error {
		// The mount keeps the namespace alive after the thread has left it.
		if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount namespace: %w", err)
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.LinkSetUp(lo)
	})
	if err != nil {
		return errors.Join(err, removeNamespace(path))
	}
	return nil
}

func removeNamespace(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Dial connects to a loopback port in the kernel's namespace.
func (m *Manager) Dial(ctx context.Context, a Attachment, port uint16) (net.Conn, error) {
	ns, err := os.Open(m.Path(a))
	if err != nil {
		return nil, fmt.Errorf("open network namespace of %s: %w", a.Key, err)
	}
	defer ns.Close()
	var conn net.Conn
	enter := func() error { return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET) }
	err = inNamespace(enter, func() (err error) {
		// With a literal address of one family, the dialer uses this thread.
		conn, err = new(net.Dialer).DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if errors.Is(err, unix.ECONNREFUSED) {
			if six, err6 := new(net.Dialer).DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(int(port)))); err6 == nil {
				conn, err = six, nil
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dial port %d of %s: %w", port, a.Key, err)
	}
	return conn, nil
}

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

// The maximum duration of dump and the pauses between its attempts. A dump of a thousand links
// takes a few milliseconds. The longest pause is short compared with dumpTimeout, so that one
// undisturbed moment is enough.
const (
	dumpTimeout    = 30 * time.Second
	dumpFirstPause = time.Millisecond
	dumpLastPause  = 100 * time.Millisecond
)

// dump lists objects by netlink. It retries when the kernel reports that the list changed during
// the read, because such a list can lack entries or contain duplicates. It returns ErrUnavailable
// if no attempt was undisturbed within dumpTimeout. Every list of links, addresses, routes and
// neighbors must use it.
func dump[T any](what string, list func() ([]T, error)) ([]T, error) {
	deadline := time.Now().Add(dumpTimeout)
	for pause := dumpFirstPause; ; pause = min(2*pause, dumpLastPause) {
		found, err := list()
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("list %s: it kept changing for %s: %w: %w", what, dumpTimeout, errdefs.ErrUnavailable, err)
		}
		time.Sleep(pause)
	}
}

// links returns the interfaces of a namespace.
func links(h *netlink.Handle) ([]netlink.Link, error) {
	return dump("links", h.LinkList)
}

// addresses returns the IPv4 addresses of a link, or of all links if it is nil.
func addresses(h *netlink.Handle, link netlink.Link) ([]netlink.Addr, error) {
	return dump("addresses", func() ([]netlink.Addr, error) { return h.AddrList(link, netlink.FAMILY_V4) })
}
