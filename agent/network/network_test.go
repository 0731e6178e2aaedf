package network

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/nftables"
	"github.com/google/uuid"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

func open(t testing.TB, cfg Config) *Manager {
	t.Helper()
	if cfg.Agent == "" {
		cfg.Agent = uuid.NewString()
	}
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeNamespace(m.ownPath()) }) // in case m is never closed
	return m
}

// connected reserves and creates an attachment.
func connected(t *testing.T, m *Manager, key, session string) Attachment {
	t.Helper()
	a, err := m.Reserve(key, session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Remove(a); err != nil {
			t.Error(err)
		}
	})
	if _, err := m.Create(a); err != nil {
		t.Fatal(err)
	}
	if err := m.Connect(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// within runs f in the namespace of an attachment.
func within(t testing.TB, path string, f func() error) error {
	t.Helper()
	ns, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	return inNamespace(func() error { return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET) }, f)
}

// greeter answers each connection with one word.
func greeter(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello")
			c.Close()
		}
	}()
}

func listen(t *testing.T, path, addr string) string {
	t.Helper()
	var l net.Listener
	err := within(t, path, func() (err error) {
		l, err = net.Listen("tcp4", addr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	greeter(t, l)
	return l.Addr().String()
}

// How long a dial is retried. The first packet over a new bridge may be lost, and is retransmitted
// after a second.
const (
	whenOpen   = time.Minute
	whenClosed = 500 * time.Millisecond
)

// reach dials from inside a namespace and expects the greeter's word.
func reach(t *testing.T, path, addr string, timeout time.Duration) error {
	t.Helper()
	return within(t, path, func() error {
		c, err := net.DialTimeout("tcp4", addr, timeout)
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		if string(b) != "hello" {
			return errors.Join(errors.New("no greeting"), err)
		}
		return nil
	})
}

// outside creates a neighbor of the host: a namespace connected by a veth pair, with a greeter. It
// returns the greeter's address, the host's address and the namespace.
func outside(t *testing.T) (greeterAddr, hostIP, path string) {
	t.Helper()
	path = t.TempDir() + "/outside"
	if err := createNamespace(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeNamespace(path); err != nil {
			t.Error(err)
		}
	})
	ns, err := netns.GetFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "btest" + uuid.NewString()[:8]
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(ns))}))
	t.Cleanup(func() {
		if l, err := netlink.LinkByName(attrs.Name); err == nil {
			must(t, netlink.LinkDel(l))
		}
	})
	host, err := netlink.LinkByName(attrs.Name)
	must(t, err)
	must(t, netlink.AddrAdd(host, &netlink.Addr{IPNet: ipNet(netip.MustParseAddr("198.18.77.1"), 24)}))
	must(t, netlink.LinkSetUp(host))
	inside, err := netlink.NewHandleAt(ns)
	must(t, err)
	defer inside.Close()
	eth0, err := inside.LinkByName("eth0")
	must(t, err)
	must(t, inside.AddrAdd(eth0, &netlink.Addr{IPNet: ipNet(netip.MustParseAddr("198.18.77.2"), 24)}))
	must(t, inside.LinkSetUp(eth0))
	// The neighbor has a route to the kernels, which must not help it.
	must(t, inside.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: net.IPv4(198, 18, 77, 1)}))
	return listen(t, path, "198.18.77.2:0"), "198.18.77.1", path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReachability(t *testing.T) {
	needRoot(t)
	world, hostIP, neighbour := outside(t)
	m := open(t, Config{Dir: t.TempDir()})
	t.Cleanup(func() { must(t, m.Close()) })
	a := connected(t, m, "a", "one")
	b := connected(t, m, "b", "one")
	c := connected(t, m, "c", "two")
	other := open(t, Config{Dir: t.TempDir()}) // another agent of this host
	t.Cleanup(func() { must(t, other.Close()) })
	d := connected(t, other, "d", "one")

	all := func(at Attachment) string { return at.Address.String() + ":0" }
	onA, onB := listen(t, m.Path(a), all(a)), listen(t, m.Path(b), all(b))
	onC, onD := listen(t, m.Path(c), all(c)), listen(t, other.Path(d), all(d))
	hostListener, err := net.Listen("tcp4", ":0")
	must(t, err)
	greeter(t, hostListener)
	_, hostPort, _ := net.SplitHostPort(hostListener.Addr().String())

	for _, tt := range []struct {
		name, from, to string
		ok             bool
	}{
		{"the world", m.Path(a), world, true},
		{"the Internet from another agent's kernel", other.Path(d), world, true},
		{"a kernel of the session", m.Path(a), onB, true},
		{"itself", m.Path(a), onA, true},
		{"a kernel of another session", m.Path(a), onC, false},
		{"a kernel of another session, back", m.Path(c), onA, false},
		{"a kernel of another agent", m.Path(a), onD, false},
		{"a kernel of another agent, back", other.Path(d), onA, false},
		{"the host at the bridge", m.Path(a), a.Gateway().String() + ":" + hostPort, false},
		{"the host at another bridge", m.Path(a), c.Gateway().String() + ":" + hostPort, false},
		{"the host at its own address", m.Path(a), hostIP + ":" + hostPort, false},
		{"a kernel from the host's network", neighbour, onA, false},
		{"a kernel from the host", "/proc/self/ns/net", onA, false},
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
	received, sent, err := m.Traffic(a)
	if err != nil || received == 0 || sent == 0 {
		t.Errorf("traffic %d, %d, %v", received, sent, err)
	}
}

func TestDial(t *testing.T) {
	needRoot(t)
	m := open(t, Config{Dir: t.TempDir()})
	t.Cleanup(func() { must(t, m.Close()) })
	a := connected(t, m, "a", "one")
	before, err := os.Readlink("/proc/self/ns/net")
	must(t, err)
	for _, loopback := range []string{"127.0.0.1:0", "[::1]:0"} {
		var l net.Listener
		must(t, within(t, m.Path(a), func() (err error) { l, err = net.Listen("tcp", loopback); return err }))
		greeter(t, l)
		addr := l.Addr().(*net.TCPAddr)
		c, err := m.Dial(t.Context(), a, uint16(addr.Port))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
			t.Errorf("%s said %q, %v", loopback, b, err)
		}
		c.Close()
	}
	if _, err := m.Dial(t.Context(), a, 1); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("dial of a closed port: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Dial(ctx, a, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("dial after cancel: %v", err)
	}
	after, err := os.Readlink("/proc/self/ns/net")
	if must(t, err); after != before {
		t.Errorf("the process moved from %s to %s", before, after)
	}
}

// tagged returns the links of a namespace whose names contain the manager's tag.
func tagged(t *testing.T, m *Manager, h *netlink.Handle) (names []string) {
	t.Helper()
	list, err := links(h)
	must(t, err)
	for _, l := range list {
		if n := l.Attrs().Name; strings.Contains(n, m.tag) {
			names = append(names, n)
		}
	}
	return names
}

// gone checks that the caller's namespace, the host, contains nothing of an agent.
func gone(t *testing.T, m *Manager) {
	t.Helper()
	h, err := netlink.NewHandle()
	must(t, err)
	defer h.Close()
	if left := tagged(t, m, h); len(left) > 0 || strings.Contains(tables(t), m.tag) {
		t.Errorf("left: links %v, tables %s", left, tables(t))
	}
	if left, _ := os.ReadDir(m.cfg.Dir); len(left) != 0 {
		t.Errorf("left in %s: %v", m.cfg.Dir, left)
	}
	claims, _ := os.ReadDir(m.cfg.Claims)
	for _, c := range claims {
		if owner, _ := os.ReadFile(filepath.Join(m.cfg.Claims, c.Name())); string(owner) == m.cfg.Agent {
			t.Errorf("left: claim of %s", c.Name())
		}
	}
}

func TestNothingLeft(t *testing.T) {
	needRoot(t)
	m := open(t, Config{Dir: t.TempDir(), Claims: t.TempDir()})
	a, b := connected(t, m, "a", "one"), connected(t, m, "b", "one")
	must(t, m.Remove(a))
	if got := tagged(t, m, m.own.Handle); len(got) != 2 {
		t.Errorf("after one of two kernels: %v", got)
	}
	if got := tagged(t, m, m.host.Handle); len(got) != 1 {
		t.Errorf("the host has %v", got)
	}
	must(t, m.Remove(b))
	must(t, m.Remove(b))
	must(t, m.Close())
	gone(t, m)
}

func TestAfterKill(t *testing.T) {
	needRoot(t)
	dir, claims := t.TempDir(), t.TempDir()
	first := open(t, Config{Dir: dir, Claims: claims})
	a := connected(t, first, "a", "one")
	connected(t, first, "b", "two")
	// This simulates a killed process: nothing is removed.
	second := open(t, Config{Agent: first.cfg.Agent, Dir: dir, Claims: claims})
	must(t, second.Adopt(a))
	must(t, second.Sweep())
	if got := tagged(t, second, second.own.Handle); len(got) != 2 {
		t.Errorf("links after sweep: %v", got)
	}
	addr := listen(t, second.Path(a), "127.0.0.1:0")
	if err := reach(t, second.Path(a), addr, whenOpen); err != nil {
		t.Error(err)
	}
	c, err := second.Reserve("c", "one")
	must(t, err)
	if c.Address == a.Address || c.Subnet != a.Subnet {
		t.Errorf("reserved %v beside %v", c, a)
	}
	must(t, second.Remove(c))
	must(t, second.Remove(a))
	must(t, second.Close())
	gone(t, second)
}

// A Connect that was interrupted at any point is completed by the next one.
func TestConnectAgain(t *testing.T) {
	needRoot(t)
	m := open(t, Config{Dir: t.TempDir(), Claims: t.TempDir()})
	t.Cleanup(func() { must(t, m.Close()) })
	a, b := connected(t, m, "a", "one"), connected(t, m, "b", "one")
	must(t, m.own.remove(m.bridge(a.Subnet, nil)))
	half := netlink.NewLinkAttrs()
	half.Name = m.bridge(a.Subnet, nil)
	must(t, m.own.LinkAdd(&netlink.Bridge{LinkAttrs: half}))
	must(t, m.Connect(t.Context(), a))
	must(t, m.Connect(t.Context(), b))
	must(t, m.Connect(t.Context(), b))
	if err := reach(t, m.Path(a), listen(t, m.Path(b), b.Address.String()+":0"), whenOpen); err != nil {
		t.Error(err)
	}
	link, err := m.own.LinkByName(half.Name)
	must(t, err)
	if got, err := addresses(m.own.Handle, link); err != nil || len(got) != 1 || got[0].IP.String() != a.Gateway().String() {
		t.Errorf("the bridge has %v, want %s (%v)", got, a.Gateway(), err)
	}
}

func TestAddresses(t *testing.T) {
	needRoot(t)
	claims := t.TempDir()
	cfg := Config{Agent: "x", Dir: t.TempDir(), Claims: claims, Subnet: netip.MustParsePrefix("10.77.0.0/26")}
	m := open(t, cfg)
	t.Cleanup(func() { must(t, m.Close()) })
	var held []Attachment
	for range 29 {
		a, err := m.Reserve("k"+uuid.NewString(), "one")
		must(t, err)
		held = append(held, a)
	}
	if _, err := m.Reserve("k", "one"); !errdefs.IsResourceExhausted(err) {
		t.Errorf("kernel 30 of a session: %v", err)
	}
	a, err := m.Reserve("k", "two")
	must(t, err)
	if _, err := m.Reserve("k", "three"); !errdefs.IsResourceExhausted(err) {
		t.Errorf("third session: %v", err)
	}
	cfg.Agent, cfg.Dir = "y", t.TempDir()
	neighbour := open(t, cfg)
	t.Cleanup(func() { must(t, neighbour.Close()) })
	if _, err := neighbour.Reserve("k", "one"); !errdefs.IsResourceExhausted(err) {
		t.Errorf("same subnet for another agent: %v", err)
	}
	must(t, m.Remove(a))
	b, err := neighbour.Reserve("k", "one")
	must(t, err)
	if diff := cmp.Diff(a.Subnet, b.Subnet, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	if err := m.Adopt(b); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("adopt another agent's subnet: %v", err)
	}
	must(t, neighbour.Remove(b))
	for _, h := range held {
		must(t, m.Remove(h))
	}
	if _, err := New(Config{Dir: t.TempDir(), Claims: claims, Subnet: netip.MustParsePrefix("10.0.0.0/30")}); !errdefs.IsInvalidArgument(err) {
		t.Errorf("tiny subnet: %v", err)
	}
}

// tables returns the names of the host's nftables tables.
func tables(t *testing.T) string {
	t.Helper()
	c, err := nftables.New()
	must(t, err)
	list, err := c.ListTables()
	must(t, err)
	var b strings.Builder
	for _, table := range list {
		b.WriteString(table.Name + " ")
	}
	return b.String()
}
