package network

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/agentpb"
)

// Overlay packets are accepted only from an agent of the same session, and containers cannot send
// any.
func TestForgedFrames(t *testing.T) {
	needRoot(t)
	x := wiredMachines(t, 3)
	t.Cleanup(func() { closeAll(t, x...) })
	one := spread{agentpb.MinVNI, netip.MustParsePrefix("10.214.0.0/29"), []*machine{x[0], x[1]}}
	two := spread{agentpb.MinVNI + 1, netip.MustParsePrefix("10.214.0.8/29"), []*machine{x[0], x[1]}}
	a, b := one.join(t, "one"), two.join(t, "two")
	alone, err := x[2].Reserve("c", "three")
	must(t, err)
	t.Cleanup(func() { x[2].on(t, func() error { return x[2].Remove(alone) }) })
	x[2].on(t, func() error {
		if _, err := x[2].Create(alone); err != nil {
			return err
		}
		return x[2].Connect(t.Context(), alone)
	})
	victim := listenUDP(t, x[0].Path(a[0]), a[0].Address)
	frame := forge(one.vni, a[0].Address, a[1].Address, victim)
	for _, tt := range []struct {
		name, from string
		ok         bool
	}{
		{"an agent of the session", x[1].path, true},
		{"another machine", x[2].path, false},
		{"a container of another session on an agent of the session", x[1].Path(b[1]), false},
		{"a container of the session", x[1].Path(a[1]), false},
		{"a container on this agent", x[0].Path(b[0]), false},
		{"a container of another agent", x[2].Path(alone), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			word := uuid.NewString()
			must(t, within(t, tt.from, func() error {
				c, err := net.Dial("udp4", x[0].cfg.Endpoint.String())
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = c.Write(frame(word))
				return err
			}))
			timeout := whenOpen
			if !tt.ok {
				timeout = whenClosed
			}
			if got := victim.hears(word, timeout); got != tt.ok {
				t.Errorf("the frame arrives: %v, want %v", got, tt.ok)
			}
		})
	}
}

// listener is a UDP port in a namespace.
type listener struct{ net.PacketConn }

func listenUDP(t *testing.T, path string, a netip.Addr) listener {
	t.Helper()
	var l listener
	must(t, within(t, path, func() (err error) { l.PacketConn, err = net.ListenPacket("udp4", a.String()+":0"); return err }))
	t.Cleanup(func() { l.Close() })
	return l
}

func (l listener) hears(word string, timeout time.Duration) bool {
	_ = l.SetReadDeadline(time.Now().Add(timeout))
	buf := make([]byte, 2048)
	for {
		n, _, err := l.ReadFrom(buf)
		if err != nil {
			return false
		}
		if string(buf[:n]) == word {
			return true
		}
	}
}

// forge returns a function that builds the encapsulated packet of a kernel's datagram.
func forge(vni uint32, to, from netip.Addr, l listener) func(word string) []byte {
	port := l.LocalAddr().(*net.UDPAddr).Port
	return func(word string) []byte {
		f := []byte{8, 0, 0, 0, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}
		f = append(append(append(f, hardware(to)...), hardware(from)...), 8, 0)
		size := 28 + len(word)
		ip := []byte{0x45, 0, byte(size >> 8), byte(size), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
		ip = append(append(ip, from.AsSlice()...), to.AsSlice()...)
		sum := uint32(0)
		for i := 0; i < len(ip); i += 2 {
			sum += uint32(ip[i])<<8 | uint32(ip[i+1])
		}
		sum = ^(sum>>16 + sum&0xffff)
		ip[10], ip[11] = byte(sum>>8), byte(sum)
		udp := []byte{0x30, 0x39, byte(port >> 8), byte(port), 0, byte(size - 20), 0, 0}
		return append(append(append(f, ip...), udp...), word...)
	}
}
