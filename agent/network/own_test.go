package network

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// changes receives notifications about links, addresses and routes of a namespace.
type changes struct {
	*nl.NetlinkSocket
	h *netlink.Handle
}

func watch(t *testing.T, ns netns.NsHandle) changes {
	t.Helper()
	socket, err := nl.SubscribeAt(ns, netns.None(), unix.NETLINK_ROUTE,
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	must(t, err)
	t.Cleanup(socket.Close)
	h, err := netlink.NewHandleAt(ns)
	must(t, err)
	t.Cleanup(h.Close)
	must(t, socket.SetReceiveTimeout(&unix.Timeval{Sec: int64(whenOpen / time.Second)}))
	return changes{socket, h}
}

// since returns the changes so far. It adds a link to mark their end.
func (c changes) since(t *testing.T) (list []string) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "marker"
	must(t, c.h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	defer func() {
		marker, err := c.h.LinkByName(attrs.Name)
		must(t, err)
		must(t, c.h.LinkDel(marker))
	}()
	for {
		messages, _, err := c.Receive()
		must(t, err)
		for _, m := range messages {
			if bytes.Contains(m.Data, []byte(attrs.Name+"\x00")) {
				return list
			}
			list = append(list, fmt.Sprintf("type %d: %q", m.Header.Type, m.Data))
		}
	}
}

// settle waits until the effects of earlier changes are complete.
func (c changes) settle(t *testing.T) {
	t.Helper()
	wait.Until(t, "the host's links are up", func() bool {
		list, err := links(c.h)
		must(t, err)
		addrs, err := dump("addresses", func() ([]netlink.Addr, error) { return c.h.AddrList(nil, netlink.FAMILY_ALL) })
		must(t, err)
		rising := slices.ContainsFunc(list, func(l netlink.Link) bool {
			return l.Type() == "veth" && l.Attrs().OperState != netlink.OperUp
		})
		return !rising && !slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.Flags&unix.IFA_F_TENTATIVE != 0 })
	})
	c.since(t)
}

// Starting and ending sessions, on one agent or several, changes none of the host's links,
// addresses and routes: browsers on the same machine abort their requests at such changes.
func TestHostSeesNothing(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 2)
	t.Cleanup(func() { closeAll(t, x...) })
	ns, err := netns.GetFromPath(x[0].path)
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	x[0].on(t, x[0].Sweep) // includes the start of an agent
	w := watch(t, ns)
	w.settle(t)
	one := spread{agentpb.MinVNI, netip.MustParsePrefix("10.214.0.0/29"), x}.join(t, "one")
	a, err := x[0].Reserve("a", "two")
	must(t, err)
	x[0].on(t, func() error {
		_, err := x[0].Create(a)
		return errors.Join(err, x[0].Connect(t.Context(), a))
	})
	if err := reach(t, x[0].Path(a), listen(t, x[1].path, "198.18.79.2:0"), whenOpen); err != nil {
		t.Error(err)
	}
	if err := reach(t, x[0].Path(one[0]), listen(t, x[1].Path(one[1]), one[1].Address.String()+":0"), whenOpen); err != nil {
		t.Error(err)
	}
	x[0].on(t, func() error { return errors.Join(x[0].Remove(a), x[0].Remove(one[0])) })
	if got := w.since(t); len(got) > 0 {
		t.Errorf("the host sees %d changes:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// onHost creates the links that an older agent, which had no namespace of its own, had on the host.
func onHost(t *testing.T, m *Manager, a Attachment) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = m.bridge(a.Subnet, a.Overlay)
	if err := m.host.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, unix.EEXIST) {
		t.Fatal(err)
	}
	bridge, err := m.host.LinkByName(attrs.Name)
	must(t, err)
	must(t, m.host.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(a.Gateway(), a.Subnet.Bits())}))
	must(t, m.host.LinkSetUp(bridge))
	ns, err := netns.GetFromPath(m.Path(a))
	must(t, err)
	defer ns.Close()
	cable := netlink.NewLinkAttrs()
	cable.Name, cable.MasterIndex = m.veth(a), bridge.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: cable, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(ns))}
	must(t, m.host.LinkAdd(veth))
	must(t, m.host.LinkSetUp(veth))
	inside, err := netlink.NewHandleAt(ns)
	must(t, err)
	defer inside.Close()
	eth0, err := inside.LinkByName("eth0")
	must(t, err)
	must(t, inside.AddrAdd(eth0, &netlink.Addr{IPNet: ipNet(a.Address, a.Subnet.Bits())}))
	must(t, inside.LinkSetUp(eth0))
	must(t, inside.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: a.Gateway().AsSlice()}))
	// The kernel has a permanent neighbor entry of its gateway.
	bridge, err = m.host.LinkByName(attrs.Name)
	must(t, err)
	must(t, inside.NeighSet(&netlink.Neigh{LinkIndex: eth0.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.Gateway().AsSlice(), HardwareAddr: bridge.Attrs().HardwareAddr}))
}

// A newer agent, which has its own namespace, adopts sessions whose bridges an older one created on
// the host.
func TestSessionsMoveIn(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 2)
	t.Cleanup(func() { closeAll(t, x...) })
	world := listen(t, x[1].path, "198.18.79.2:0")
	var kernels []Attachment
	for _, key := range []string{"b", "a"} { // a comes last: each kernel may change the MAC address of the bridge
		k, err := x[0].Reserve(key, "one")
		must(t, err)
		t.Cleanup(func() { x[0].on(t, func() error { return x[0].Remove(k) }) })
		_, err = x[0].Create(k)
		must(t, err)
		onHost(t, x[0].Manager, k)
		kernels = append(kernels, k)
	}
	slices.Reverse(kernels)
	served := listen(t, x[0].Path(kernels[1]), kernels[1].Address.String()+":0")
	near, far := pipe(t, x[0].Path(kernels[0]), x[0].Path(kernels[1]), kernels[1].Address)
	x[0].start(t, x[0].cfg) // the new version
	x[0].on(t, func() error {
		return errors.Join(x[0].Adopt(kernels[0]), x[0].Adopt(kernels[1]), x[0].Sweep())
	})
	if got := tagged(t, x[0].Manager, x[0].host.Handle); len(got) != 1 || got[0] != x[0].uplink() {
		t.Errorf("the host has %v", got)
	}
	_, err := near.Write([]byte("hello"))
	must(t, err)
	word := make([]byte, 5)
	if _, err := io.ReadFull(far, word); err != nil || string(word) != "hello" {
		t.Errorf("a connection between kernels: %q, %v", word, err)
	}
	for _, to := range []string{served, world} {
		if err := reach(t, x[0].Path(kernels[0]), to, whenOpen); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// pipe opens a connection between two namespaces.
func pipe(t *testing.T, from, to string, address netip.Addr) (near, far net.Conn) {
	t.Helper()
	var l net.Listener
	must(t, within(t, to, func() (err error) { l, err = net.Listen("tcp4", address.String()+":0"); return err }))
	defer l.Close()
	must(t, within(t, from, func() (err error) {
		near, err = net.DialTimeout("tcp4", l.Addr().String(), whenOpen)
		return err
	}))
	t.Cleanup(func() { near.Close() })
	far, err := l.Accept()
	must(t, err)
	t.Cleanup(func() { far.Close() })
	must(t, far.SetReadDeadline(time.Now().Add(whenOpen)))
	return near, far
}

// After a reboot the state directory contains a file in place of the mounted namespace.
func TestAfterReboot(t *testing.T) {
	needRoot(t)
	cfg := Config{Agent: "r", Dir: t.TempDir(), Claims: t.TempDir()}
	must(t, os.WriteFile(cfg.Dir+"/"+ownName, nil, 0o400))
	m := open(t, cfg)
	t.Cleanup(func() { must(t, m.Close()) })
	connected(t, m, "a", "one")
}
