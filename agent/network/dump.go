package network

import (
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/vishvananda/netlink"
)

// How long dump tries, and the pauses between its tries. A dump of a thousand
// links takes a few milliseconds; the longest pause is short beside dumpTimeout,
// so that one quiet moment is enough.
const (
	dumpTimeout    = 30 * time.Second
	dumpFirstPause = time.Millisecond
	dumpLastPause  = 100 * time.Millisecond
)

// dump lists something by netlink, and tries again when the kernel says that the
// list changed while it was read: such a list may lack entries or have them
// twice. It returns ErrUnavailable when no try was left alone for dumpTimeout.
// Every list of links, addresses, routes and neighbours goes through it.
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

// links lists the interfaces of a namespace.
func links(h *netlink.Handle) ([]netlink.Link, error) {
	return dump("links", h.LinkList)
}

// addresses lists the IPv4 addresses of a link, or of all with nil.
func addresses(h *netlink.Handle, link netlink.Link) ([]netlink.Addr, error) {
	return dump("addresses", func() ([]netlink.Addr, error) { return h.AddrList(link, netlink.FAMILY_V4) })
}
