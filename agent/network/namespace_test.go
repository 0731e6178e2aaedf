package network

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/vishvananda/netlink"
)

// flap creates many links in a namespace, so that a list of them takes several messages, and adds
// and removes links in bursts while the test runs.
func flap(t *testing.T, path string) {
	t.Helper()
	var h *netlink.Handle
	must(t, within(t, path, func() (err error) { h, err = netlink.NewHandle(); return err }))
	bridge := func(name string) *netlink.Bridge {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		return &netlink.Bridge{LinkAttrs: attrs}
	}
	for i := range 300 {
		d := bridge(fmt.Sprintf("still%d", i))
		must(t, h.LinkAdd(d))
		for j := range 4 {
			must(t, h.AddrAdd(d, &netlink.Addr{IPNet: ipNet(netip.AddrFrom4([4]byte{198, 18, byte(4*(i/200) + j), byte(i%200 + 1)}), 32)}))
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := bridge("flap")
			if h.LinkAdd(d) == nil {
				_ = h.AddrAdd(d, &netlink.Addr{IPNet: ipNet(netip.MustParseAddr("198.18.9.1"), 32)})
				_ = h.LinkDel(d)
			}
			if i%20 == 19 {
				time.Sleep(20 * time.Millisecond) // leaves processor time for other work
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped; h.Close() })
}

// A list that the kernel interrupts because links change is read again.
func TestListsWhileLinksChange(t *testing.T) {
	needRoot(t)
	host := newHost(t)
	path := fmt.Sprintf("/proc/self/fd/%d", host)
	m := &machine{path: path, dir: t.TempDir()}
	m.start(t, Config{Dir: m.dir, Claims: t.TempDir(), Endpoint: netip.MustParseAddrPort("127.0.0.1:14791")})
	t.Cleanup(func() { closeAll(t, m) })
	flap(t, path)
	h, err := netlink.NewHandleAt(host)
	must(t, err)
	t.Cleanup(h.Close)
	interrupted := func(list func() error) {
		t.Helper()
		for deadline := time.Now().Add(whenOpen); ; {
			err := list()
			if errors.Is(err, netlink.ErrDumpInterrupted) {
				return
			}
			if must(t, err); time.Now().After(deadline) {
				t.Skip("this kernel never interrupts a list")
			}
		}
	}
	interrupted(func() error { _, err := h.LinkList(); return err })
	interrupted(func() error { _, err := h.AddrList(nil, netlink.FAMILY_V4); return err })
	for range 100 {
		m.on(t, m.Sweep)
		key := uuid.NewString()
		a, err := m.Reserve(key, key)
		must(t, err)
		m.on(t, func() error { return m.Remove(a) })
		_, err = m.foreignNetworks()
		must(t, err)
		if !m.isHere(netip.MustParseAddr("198.18.0.1")) {
			t.Fatal("an address of the host is not found")
		}
	}
}

func TestDumpGivesUp(t *testing.T) {
	if _, err := dump("things", func() ([]int, error) { return nil, errors.New("no") }); err == nil {
		t.Error("an error is lost")
	}
	tries := 0
	found, err := dump("things", func() ([]int, error) {
		if tries++; tries < 5 {
			return []int{1}, netlink.ErrDumpInterrupted
		}
		return []int{1, 2}, nil
	})
	if err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
}
