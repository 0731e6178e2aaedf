package network

import (
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/vishvananda/netlink"
)

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
