package testenv

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Wire forwards connections to a server until it is cut. Cut closes no connection: both ends
// receive nothing from then on.
type Wire struct {
	Addr string
	cut  atomic.Bool
}

// NewWire forwards to a server's address until the end of the test.
func NewWire(t testing.TB, network, server string) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{Addr: l.Addr().String()}
	var mu sync.Mutex
	var ends []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range ends {
			c.Close()
		}
	})
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial(network, server)
			if err != nil {
				a.Close()
				continue
			}
			mu.Lock()
			ends = append(ends, a, b)
			mu.Unlock()
			go w.carry(a, b)
			go w.carry(b, a)
		}
	}()
	return w
}

// Cut drops all data that is sent from now on.
func (w *Wire) Cut() { w.cut.Store(true) }

func (w *Wire) carry(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !w.cut.Load() {
			_, _ = to.Write(buf[:n])
			if err != nil {
				to.Close()
			}
		}
		if err != nil {
			return
		}
	}
}
