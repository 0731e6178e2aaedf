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

	"github.com/vishvananda/netlink"
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
