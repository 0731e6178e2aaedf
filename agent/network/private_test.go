package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/berthhq/berth/internal/netlist"
)

// privateNeighbour connects two machines by additional private networks, in which the second one
// has the address that ends in 2.
func privateNeighbour(t *testing.T, x []*machine, networks ...string) {
	t.Helper()
	for i, m := range x[:2] {
		ns, err := netns.GetFromPath(m.path)
		must(t, err)
		defer ns.Close()
		h, err := netlink.NewHandleAt(ns)
		must(t, err)
		defer h.Close()
		uplink, err := h.LinkByName("uplink")
		must(t, err)
		for _, n := range networks {
			p := netip.MustParsePrefix(n)
			a := address(number(p.Addr()) + 1 + uint32(i))
			must(t, h.AddrAdd(uplink, &netlink.Addr{IPNet: ipNet(a, p.Bits())}))
		}
	}
}

// addLocal adds an address to the machine; route adds a route to a network.
func (x *machine) addLocal(t *testing.T, a netip.Addr) {
	t.Helper()
	x.on(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(a, 32)})
	})
}

func (x *machine) route(t *testing.T, to netip.Prefix, by netip.Addr) {
	t.Helper()
	x.on(t, func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(to.Addr(), to.Bits()), Gw: by.AsSlice()})
	})
}

// kernel starts a kernel of a session that can reach the given networks.
func (x *machine) kernel(t *testing.T, session string, allow ...string) Attachment {
	t.Helper()
	a, err := x.Reserve(session+"-"+uuid.NewString()[:8], session)
	must(t, err)
	a.Allow, err = netlist.Parse(allow)
	must(t, err)
	t.Cleanup(func() { x.on(t, func() error { return x.Remove(a) }) })
	x.on(t, func() error {
		_, err := x.Create(a)
		return errors.Join(err, x.Connect(t.Context(), a))
	})
	return a
}

// trial is an address that a kernel tries to reach.
type trial struct {
	name string
	from Attachment
	to   string
	ok   bool
}

func (x *machine) try(t *testing.T, trials []trial) {
	t.Helper()
	for _, tt := range trials {
		t.Run(tt.name, func(t *testing.T) {
			timeout := whenOpen
			if !tt.ok {
				timeout = whenClosed
			}
			if err := reach(t, x.Path(tt.from), tt.to, timeout); (err == nil) != tt.ok {
				t.Errorf("%s: %v, want reachable %v", tt.to, err, tt.ok)
			}
		})
	}
}

// Containers reach private networks only if the operator allows it: on the agent for all sessions,
// or on the resource group for its sessions.
func TestPrivateNetworks(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 2)
	t.Cleanup(func() { closeAll(t, x...) })
	privateNeighbour(t, x, "10.77.0.0/24", "172.20.77.0/24", "192.168.77.0/24", "100.66.77.0/24", "10.78.0.0/24")
	privateNeighbour(t, x, "10.213.200.0/24")
	at := func(addr string) string { return listen(t, x[1].path, addr) }
	ten, twelve, sixteen, shared := at("10.77.0.2:0"), at("172.20.77.2:0"), at("192.168.77.2:0"), at("100.66.77.2:0")
	second, other, registry, public := at("10.78.0.2:0"), at("10.78.0.2:0"), at("192.168.77.2:5000"), at("198.18.79.2:0")
	cfg := x[0].cfg
	x[0].on(t, x[0].Close)
	_, port, _ := net.SplitHostPort(second)
	cfg.Allow, _ = netlist.Parse([]string{"192.168.77.2:5000", "10.213.200.0/24"})
	amid := at("10.213.200.2:0")
	cfg.Deny = []netip.Prefix{netip.MustParsePrefix("198.18.79.2/32")}
	cfg.Resolvers = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.77.0.2")} }
	x[0].start(t, cfg)
	resolver, elsewhere := at("10.77.0.2:53"), at("172.20.77.2:53")
	plain, peer := x[0].kernel(t, "plain"), x[0].kernel(t, "plain")
	granted := x[0].kernel(t, "granted", "10.77.0.0/24", "10.78.0.2:"+port, "198.18.79.0/24")
	beside := listen(t, x[0].Path(peer), peer.Address.String()+":0")
	all := []trial{
		{"10/8", plain, ten, false},
		{"172.16/12", plain, twelve, false},
		{"192.168/16", plain, sixteen, false},
		{"100.64/10", plain, shared, false},
		{"allowed by the agent", plain, registry, true},
		{"a network of the host amid the range for sessions", plain, amid, true},
		{"denied by the agent", plain, public, false},
		{"a kernel of the session", plain, beside, true},
		{"the resolver", plain, resolver, true},
		{"another server of names", plain, elsewhere, false},
		{"allowed by the group", granted, ten, true},
		{"the port that the group allows", granted, second, true},
		{"another port", granted, other, false},
		{"allowed by the agent, in addition to the group", granted, registry, true},
		{"a network that the group allows and the agent denies in part", granted, public, false},
		{"not allowed by the group", granted, sixteen, false},
	}
	x[0].try(t, all)
	t.Run("names by UDP", func(t *testing.T) {
		for addr, ok := range map[string]bool{"10.77.0.2:53": true, "10.77.0.2:54": false, "172.20.77.2:53": false} {
			var l listener
			must(t, within(t, x[1].path, func() (err error) { l.PacketConn, err = net.ListenPacket("udp4", addr); return err }))
			word := uuid.NewString()
			must(t, within(t, x[0].Path(plain), func() error {
				c, err := net.Dial("udp4", addr)
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = fmt.Fprint(c, word)
				return err
			}))
			timeout := whenOpen
			if !ok {
				timeout = whenClosed
			}
			if got := l.hears(word, timeout); got != ok {
				t.Errorf("%s: %v, want %v", addr, got, ok)
			}
			must(t, l.Close())
		}
	})
	t.Run("a session's network, which a machine outside has too", func(t *testing.T) {
		twin := address(number(plain.Subnet.Addr()) + 29)
		x[1].addLocal(t, twin)
		x[0].route(t, plain.Subnet, netip.MustParseAddr("198.18.79.2"))
		x[0].try(t, []trial{{"from another session", x[0].kernel(t, "wide", "10.0.0.0/8"), listen(t, x[1].path, twin.String()+":0"), false}})
	})
	x[0].start(t, cfg) // after SIGKILL
	x[0].on(t, func() error {
		return errors.Join(x[0].Adopt(plain), x[0].Adopt(peer), x[0].Adopt(granted), x[0].Sweep())
	})
	t.Run("after a restart", func(t *testing.T) { x[0].try(t, all) })
	t.Run("a session after one that was allowed more", func(t *testing.T) {
		x[0].on(t, func() error { return x[0].Remove(granted) })
		next := x[0].kernel(t, "next")
		if next.Subnet != granted.Subnet {
			t.Fatalf("%s has another part than %s", next.Subnet, granted.Subnet)
		}
		x[0].try(t, []trial{{"allowed for the other session", next, ten, false}, {"a port", next, second, false}})
	})
}

// The firewall supports many allowed networks, also nested ones.
func TestManyGrants(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 1)
	t.Cleanup(func() { closeAll(t, x...) })
	var list []string
	for i := range netlist.MaxEntries - 3 {
		list = append(list, fmt.Sprintf("10.%d.0.0/16:%d", i, 1000+i%2))
	}
	list = append(list, "10.0.0.0/8", "10.9.0.0/16", "0.0.0.0/0:443")
	for i := range 40 {
		x[0].kernel(t, fmt.Sprint("session", i), list...)
	}
	if names := strings.Join(tagged(t, x[0].Manager, x[0].own.Handle), " "); !strings.Contains(names, x[0].bridges()) {
		t.Errorf("no bridges among %s", names)
	}
}
