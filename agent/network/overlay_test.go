package network

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
)

// machine is the host of an agent: a network namespace.
type machine struct {
	*Manager
	path string
	dir  string
}

// on runs f on the machine.
func (x *machine) on(t *testing.T, f func() error) {
	t.Helper()
	must(t, within(t, x.path, f))
}

// wiredMachines returns hosts on one network, 198.18.79.0/24, with an agent on each.
func wiredMachines(t testing.TB, n int) []*machine {
	t.Helper()
	hub := newHost(t)
	inHub, err := netlink.NewHandleAt(hub)
	must(t, err)
	t.Cleanup(inHub.Close)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "hub"
	must(t, inHub.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	bridge, err := inHub.LinkByName("hub")
	must(t, err)
	must(t, inHub.LinkSetUp(bridge))
	var list []*machine
	for i := range n {
		host := newHost(t)
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = fmt.Sprintf("port%d", i), bridge.Attrs().Index
		must(t, inHub.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "uplink", PeerNamespace: netlink.NsFd(int(host))}))
		port, err := inHub.LinkByName(attrs.Name)
		must(t, err)
		must(t, inHub.LinkSetUp(port))
		inside, err := netlink.NewHandleAt(host)
		must(t, err)
		uplink, err := inside.LinkByName("uplink")
		must(t, err)
		address := netip.AddrFrom4([4]byte{198, 18, 79, byte(i + 1)})
		must(t, inside.AddrAdd(uplink, &netlink.Addr{IPNet: ipNet(address, 24)}))
		must(t, inside.LinkSetUp(uplink))
		inside.Close()
		x := &machine{path: fmt.Sprintf("/proc/self/fd/%d", host), dir: t.TempDir()}
		x.start(t, Config{Dir: x.dir, Claims: t.TempDir(), Endpoint: netip.AddrPortFrom(address, DefaultPort)})
		list = append(list, x)
	}
	return list
}

// newHost creates a network namespace with loopback.
func newHost(t testing.TB) netns.NsHandle {
	t.Helper()
	path := t.TempDir() + "/host"
	must(t, createNamespace(path))
	t.Cleanup(func() {
		if err := removeNamespace(path); err != nil {
			t.Error(err)
		}
	})
	ns, err := netns.GetFromPath(path)
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	return ns
}

// start starts the machine's agent, or restarts it.
func (x *machine) start(t testing.TB, cfg Config) {
	t.Helper()
	must(t, within(t, x.path, func() error {
		x.Manager = open(t, cfg)
		return nil
	}))
	if x.off != "" && strings.Contains(x.off, "vxlan") {
		t.Skip(x.off)
	}
	if x.off != "" {
		t.Fatal(x.off)
	}
}

// spread is the network of a session and the machine of each kernel.
type spread struct {
	vni    uint32
	subnet netip.Prefix
	on     []*machine
}

// join creates all kernels of a session. Their names are their numbers.
func (s spread) join(t testing.TB, session string) []Attachment {
	t.Helper()
	var all []Attachment
	for i, x := range s.on {
		o := &Overlay{VNI: s.vni, MTU: x.Reach().MTU}
		for j, y := range s.on {
			if y != x {
				o.Peers = append(o.Peers, Peer{s.address(j), y.cfg.Endpoint})
			}
		}
		a, err := x.Join(Attachment{Key: fmt.Sprint(session, "-", i), Session: session, Subnet: s.subnet, Address: s.address(i), Overlay: o})
		must(t, err)
		t.Cleanup(func() {
			if err := within(t, x.path, func() error { return x.Remove(a) }); err != nil {
				t.Error(err)
			}
		})
		must(t, within(t, x.path, func() error {
			if _, err := x.Create(a); err != nil {
				return err
			}
			return x.Connect(t.Context(), a)
		}))
		all = append(all, a)
	}
	return all
}

func (s spread) address(i int) netip.Addr { return address(number(s.subnet.Addr()) + 2 + uint32(i)) }

// closeAll closes all agents and checks that nothing of them remains on their machines.
func closeAll(t *testing.T, machines ...*machine) {
	t.Helper()
	for _, x := range machines {
		x.on(t, func() error {
			if err := x.Close(); err != nil {
				return err
			}
			gone(t, x.Manager)
			return nil
		})
	}
}

func TestOverMachines(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 3)
	t.Cleanup(func() { closeAll(t, x...) })
	one := spread{agentpb.MinVNI, netip.MustParsePrefix("10.214.0.0/29"), []*machine{x[0], x[1], x[0]}}
	two := spread{agentpb.MinVNI + 1, netip.MustParsePrefix("10.214.0.8/29"), []*machine{x[0], x[1]}}
	a, b := one.join(t, "one"), two.join(t, "two")
	at := func(s spread, list []Attachment, i int) string { return s.on[i].Path(list[i]) }
	on := func(s spread, list []Attachment, i int) string {
		return listen(t, at(s, list, i), list[i].Address.String()+":0")
	}
	world := listen(t, x[2].path, "198.18.79.3:0")
	first, second, third, strange := on(one, a, 0), on(one, a, 1), on(one, a, 2), on(two, b, 1)
	for _, tt := range []struct {
		name, from, to string
		ok             bool
	}{
		{"a kernel on another machine", at(one, a, 0), second, true},
		{"and back", at(one, a, 1), first, true},
		{"another kernel of this machine", at(one, a, 0), third, true},
		{"from one machine to the second kernel of the other machine", at(one, a, 1), third, true},
		{"a kernel of another session, there", at(one, a, 0), strange, false},
		{"a kernel of another session, here", at(one, a, 1), strange, false},
		{"a kernel of another session, back", at(two, b, 1), first, false},
		{"the world", at(one, a, 1), world, true},
		{"a kernel from its host", x[0].path, first, false},
		{"a kernel from the host of others", x[1].path, first, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			timeout := whenOpen
			if !tt.ok {
				timeout = whenClosed
			}
			if err := reach(t, tt.from, tt.to, timeout); (err == nil) != tt.ok {
				t.Errorf("%s to %s: %v, want reachable %v", tt.from, tt.to, err, tt.ok)
			}
		})
	}
	t.Run("much at once is intact", func(t *testing.T) { transfer(t, at(one, a, 0), at(one, a, 1), a[1].Address, 32<<20) })
	t.Run("packets are not cut on the way", func(t *testing.T) { datagrams(t, at(one, a, 0), at(one, a, 1), a[1]) })
	t.Run("no link learns addresses of kernels", func(t *testing.T) {
		x[0].on(t, func() error {
			link, err := x[0].own.LinkByName(x[0].tunnel(one.vni))
			if err != nil {
				return err
			}
			known, err := dump("neighbours", func() ([]netlink.Neigh, error) { return x[0].own.NeighList(link.Attrs().Index, unix.AF_BRIDGE) })
			elsewhere := 0
			for _, n := range known {
				if n.IP != nil {
					elsewhere++
				}
			}
			if elsewhere != 1 || link.(*netlink.Vxlan).Learning {
				t.Errorf("%s has learned %v", link.Attrs().Name, known)
			}
			return err
		})
	})
}

// transfer sends bytes from one namespace to another and compares the checksums.
func transfer(t testing.TB, from, to string, address netip.Addr, size int) {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	got, want := sha256.New(), sha256.Sum256(data)
	if pour(t, from, to, address, data, 1, got); !bytes.Equal(got.Sum(nil), want[:]) {
		t.Errorf("%d bytes arrive as others", size)
	}
}

// pour sends data several times over one connection to a sink, and returns the duration.
func pour(t testing.TB, from, to string, address netip.Addr, data []byte, times int, sink io.Writer) time.Duration {
	t.Helper()
	var l net.Listener
	must(t, within(t, to, func() (err error) { l, err = net.Listen("tcp4", address.String()+":0"); return err }))
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			_, err = io.CopyBuffer(struct{ io.Writer }{sink}, struct{ io.Reader }{c}, make([]byte, 1<<20))
		}
		done <- err
	}()
	var c net.Conn
	must(t, within(t, from, func() (err error) { c, err = net.DialTimeout("tcp4", l.Addr().String(), whenOpen); return err }))
	begun := time.Now()
	for range times {
		if _, err := c.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	must(t, <-done)
	return time.Since(begun)
}

// datagrams sends packets of the maximum size with fragmentation disabled, and checks that larger
// ones are refused by the sender.
func datagrams(t *testing.T, from, to string, peer Attachment) {
	t.Helper()
	var l net.PacketConn
	must(t, within(t, to, func() (err error) { l, err = net.ListenPacket("udp4", peer.Address.String()+":0"); return err }))
	defer l.Close()
	var c net.Conn
	must(t, within(t, from, func() (err error) { c, err = net.Dial("udp4", l.LocalAddr().String()); return err }))
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	}))
	must(t, err)
	most := peer.Overlay.MTU - 28
	must(t, l.SetReadDeadline(time.Now().Add(whenOpen)))
	if _, err := c.Write(make([]byte, most)); err != nil {
		t.Fatalf("%d bytes: %v", most, err)
	}
	if n, _, err := l.ReadFrom(make([]byte, maxMTU)); err != nil || n != most {
		t.Fatalf("%d of %d bytes: %v", n, most, err)
	}
	if _, err := c.Write(make([]byte, most+1)); err == nil {
		t.Errorf("%d bytes leave in one packet", most+1)
	}
}

// Two agents run on one host with different ports, and one of them is killed.
func TestOverlayOnOneHost(t *testing.T) {
	needRoot(t)
	host := newHost(t)
	claims := t.TempDir()
	var x []*machine
	for i := range 2 {
		m := &machine{path: fmt.Sprintf("/proc/self/fd/%d", host), dir: t.TempDir()}
		m.start(t, Config{Dir: m.dir, Claims: claims, Endpoint: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(14789+i))})
		x = append(x, m)
	}
	one := spread{agentpb.MinVNI, netip.MustParsePrefix("10.214.0.0/29"), x}
	a := one.join(t, "one")
	both := func(t *testing.T) {
		t.Helper()
		for i := range 2 {
			to := listen(t, x[1-i].Path(a[1-i]), a[1-i].Address.String()+":0")
			if err := reach(t, x[i].Path(a[i]), to, whenOpen); err != nil {
				t.Error(err)
			}
		}
		transfer(t, x[0].Path(a[0]), x[1].Path(a[1]), a[1].Address, 8<<20)
	}
	both(t)
	x[0].start(t, x[0].cfg) // after SIGKILL
	x[0].on(t, func() error {
		if err := x[0].Adopt(a[0]); err != nil {
			return err
		}
		return x[0].Sweep()
	})
	both(t)
	x[0].on(t, func() error {
		if got := tagged(t, x[0].Manager, x[0].own.Handle); len(got) != 3 {
			t.Errorf("after the sweep there are %v", got)
		}
		return x[0].Connect(t.Context(), a[0])
	})
	both(t)
	for i := range x {
		x[i].on(t, func() error { return x[i].Remove(a[i]) })
	}
	closeAll(t, x...)
}

func TestJoinRefuses(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 1)[0]
	subnet := netip.MustParsePrefix("10.214.0.0/29")
	good := func() Attachment {
		return Attachment{Key: "k", Session: "s", Subnet: subnet, Address: netip.MustParseAddr("10.214.0.2"),
			Overlay: &Overlay{VNI: agentpb.MinVNI, MTU: 1450, Peers: []Peer{{netip.MustParseAddr("10.214.0.3"), netip.MustParseAddrPort("198.18.79.2:4789")}}}}
	}
	for name, spoil := range map[string]func(*Attachment){
		"no overlay":           func(a *Attachment) { a.Overlay = nil },
		"a small vni":          func(a *Attachment) { a.Overlay.VNI = 1 },
		"a vni of 25 bits":     func(a *Attachment) { a.Overlay.VNI = 1 << 24 },
		"no mtu":               func(a *Attachment) { a.Overlay.MTU = 0 },
		"IPv6":                 func(a *Attachment) { a.Subnet = netip.MustParsePrefix("fd00::/64") },
		"the gateway":          func(a *Attachment) { a.Address = a.Gateway() },
		"outside":              func(a *Attachment) { a.Address = netip.MustParseAddr("10.214.0.9") },
		"a peer outside":       func(a *Attachment) { a.Overlay.Peers[0].Address = netip.MustParseAddr("10.214.0.9") },
		"itself as a peer":     func(a *Attachment) { a.Overlay.Peers[0].Address = a.Address },
		"a peer without agent": func(a *Attachment) { a.Overlay.Peers[0].Endpoint = netip.AddrPort{} },
	} {
		a := good()
		spoil(&a)
		if _, err := x.Join(a); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	first, err := x.Join(good())
	must(t, err)
	for name, spoil := range map[string]func(*Attachment){
		"its address":               func(a *Attachment) { a.Key = "other" },
		"its vni":                   func(a *Attachment) { a.Session = "t"; a.Subnet = netip.MustParsePrefix("10.215.0.0/29") },
		"its subnet":                func(a *Attachment) { a.Session = "t"; a.Overlay.VNI++ },
		"another network":           func(a *Attachment) { a.Key = "other"; a.Overlay.VNI++ },
		"a network of the host":     func(a *Attachment) { a.Session = "t"; a.Subnet = netip.MustParsePrefix("198.18.79.0/29") },
		"a network of single hosts": func(a *Attachment) { a.Session = "t"; a.Subnet = netip.MustParsePrefix("10.213.4.0/29") },
	} {
		a := good()
		spoil(&a)
		a.Address = address(number(a.Subnet.Addr()) + 2)
		a.Overlay.Peers = nil
		if _, err := x.Join(a); !errdefs.IsFailedPrecondition(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := x.Reserve("k", "s"); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("an address of its own beside the session's network: %v", err)
	}
	x.on(t, func() error { return x.Remove(first) })
	off := open(t, Config{Dir: t.TempDir(), Claims: t.TempDir(), Off: "it is switched off"})
	t.Cleanup(func() { must(t, off.Close()) })
	if _, err := off.Join(good()); !errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "switched off") {
		t.Errorf("without a way to other agents: %v", err)
	}
}

func TestEndpoint(t *testing.T) {
	known := netip.MustParseAddr("192.0.2.7")
	for setting, want := range map[string]string{
		"": "192.0.2.7:4789", "10.0.0.1": "10.0.0.1:4789", ":5000": "192.0.2.7:5000", "10.0.0.1:5000": "10.0.0.1:5000",
		"fd00::1": "", "10.0.0.1:": "10.0.0.1:4789", "10.0.0.1:0": "", "10.0.0.1:70000": "", "node-1": "", "0.0.0.0": "", "224.0.0.1": "",
	} {
		got, err := ParseEndpoint(setting, known)
		if want == "" && !errdefs.IsInvalidArgument(err) || want != "" && (err != nil || got.String() != want) {
			t.Errorf("%q: %v, %v, want %q", setting, got, err, want)
		}
	}
}

func TestIntervals(t *testing.T) {
	var got []string
	for _, e := range intervals([]netip.Prefix{
		netip.MustParsePrefix("10.214.0.8/29"), netip.MustParsePrefix("10.213.0.0/16"), netip.MustParsePrefix("10.214.0.0/29"), netip.MustParsePrefix("10.214.1.0/29"),
	}) {
		a, _ := netip.AddrFromSlice(e.Key)
		got = append(got, fmt.Sprint(a, e.IntervalEnd))
	}
	want := []string{"10.213.0.0 false", "10.214.0.16 true", "10.214.1.0 false", "10.214.1.8 true"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
