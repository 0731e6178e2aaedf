package clustertest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/internal/netlist"
)

// FakeNetwork replaces the network of a machine and records its attachments.
type FakeNetwork struct {
	mu   sync.Mutex
	held map[string]bool

	Advertised network.Reach
	wide       []network.Attachment
	connected  []network.Attachment
	ServePort  func(port uint16, c net.Conn) // serves a connection
}

// NewFakeNetwork returns the network of the machine with index n.
func NewFakeNetwork(n int) *FakeNetwork {
	endpoint := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n + 1)}), network.DefaultPort)
	return &FakeNetwork{held: map[string]bool{}, Advertised: network.Reach{Endpoint: endpoint, MTU: 1450}}
}

// Reserve implements network.Network.
func (w *FakeNetwork) Reserve(key, session string) (network.Attachment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[key] = true
	return network.Attachment{Key: key, Session: session, Address: netip.MustParseAddr("192.0.2.1")}, nil
}

// Join implements network.Network.
func (w *FakeNetwork) Join(a network.Attachment) (network.Attachment, error) {
	_, err := w.Reserve(a.Key, a.Session)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wide = append(w.wide, a)
	return a, err
}

// Joined returns the latest attachment of a kernel in a network over several agents.
func (w *FakeNetwork) Joined(kernel uuid.UUID) (last network.Attachment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.wide {
		if strings.Contains(a.Key, kernel.String()) {
			last = a
		}
	}
	return last
}

// Adopt implements network.Network.
func (w *FakeNetwork) Adopt(a network.Attachment) error {
	_, err := w.Reserve(a.Key, a.Session)
	return err
}

// Reach implements network.Network.
func (w *FakeNetwork) Reach() network.Reach { return w.Advertised }

// Remove implements network.Network.
func (w *FakeNetwork) Remove(a network.Attachment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, a.Key)
	return nil
}

// Connect implements network.Network.
func (w *FakeNetwork) Connect(_ context.Context, a network.Attachment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected = append(w.connected, a)
	return nil
}

// Allowed returns the private networks that the latest kernel of a session can reach.
func (w *FakeNetwork) Allowed(session uuid.UUID) (last []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.connected {
		if a.Session == session.String() {
			last = netlist.Strings(a.Allow)
		}
	}
	return last
}

// Count returns the number of attachments that exist.
func (w *FakeNetwork) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// Create implements network.Network.
func (w *FakeNetwork) Path(a network.Attachment) string            { return "/" + a.Key }
func (w *FakeNetwork) Create(a network.Attachment) (string, error) { return "/" + a.Key, nil }

// Sweep implements network.Network.
func (w *FakeNetwork) Sweep() error { return nil }

// Traffic implements network.Network.
func (w *FakeNetwork) Traffic(network.Attachment) (received, sent uint64, e error) { return 1, 2, nil }

// ServeHTTP serves connections to ports of containers with a handler until the test ends. Other ports refuse them, unless no port is named.
func (w *FakeNetwork) ServeHTTP(t testing.TB, h http.Handler, ports ...uint16) {
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	w.ServePort = func(port uint16, c net.Conn) {
		if len(ports) > 0 && !slices.Contains(ports, port) {
			_ = c.Close()
			return
		}
		select {
		case l.conns <- c:
		case <-l.done:
			_ = c.Close()
		}
	}
}

// pipes is a listener for connections that are made in this process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Dial implements network.Network.
func (w *FakeNetwork) Dial(_ context.Context, _ network.Attachment, port uint16) (net.Conn, error) {
	if w.ServePort == nil {
		return nil, errors.New("no network")
	}
	near, far := net.Pipe()
	go w.ServePort(port, far)
	return near, nil
}
