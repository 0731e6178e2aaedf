package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const dialTimeout = 2 * time.Second

// Wire is the network between clients and servers. It forwards every connection to the first server
// that accepts it, counts bytes, and can pause and cut connections.
type Wire struct {
	to       []string
	listener net.Listener

	mu   sync.Mutex
	sent int64             // bytes from clients
	hold int64             // limit of forwarded bytes; 0: none
	turn chan struct{}     // closed when hold or cut changes
	held int               // connections that wait for the end of this hold
	cut  bool              // new connections are rejected
	open map[net.Conn]bool // both ends of the forwarded connections
}

// Open listens, and returns the URL.
func (w *Wire) Open() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	w.listener, w.open, w.turn = l, map[net.Conn]bool{}, make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.pass(c)
		}
	}()
	return "http://" + l.Addr().String(), nil
}

// Close accepts no more connections.
func (w *Wire) Close() error {
	if w.listener == nil {
		return nil
	}
	w.Cut()
	return w.listener.Close()
}

// Sent returns the number of bytes that were sent to servers so far, including headers.
func (w *Wire) Sent() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// Hold forwards this number of further bytes, and then none until Restore or Cut. Each connection
// can exceed it by one buffer.
func (w *Wire) Hold(more int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold = w.sent + more
}

// Held reports whether a connection waits to send more than the limit.
func (w *Wire) Held() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held > 0
}

// Cut ends every connection in the middle of its data, and every new one.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for c := range w.open {
		drop(c)
	}
	w.changed()
}

// Restore ends Hold and Cut.
func (w *Wire) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
	w.changed()
}

// changed wakes the connections that wait. The caller has the lock.
func (w *Wire) changed() {
	w.hold, w.held = 0, 0 // they no longer count as waiting, even if they have not woken up yet
	close(w.turn)
	w.turn = make(chan struct{})
}

// pace waits until more bytes can be forwarded.
func (w *Wire) pace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.hold > 0 && w.sent >= w.hold {
		turn := w.turn
		w.held++
		w.mu.Unlock()
		<-turn
		w.mu.Lock()
	}
}

func (w *Wire) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent += int64(n)
}

// drop closes a connection so that its other end gets an error.
func drop(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}

func (w *Wire) pass(in net.Conn) {
	out, err := w.dial()
	if err != nil || !w.keep(in, out) {
		drop(in)
		return
	}
	defer w.forget(in, out)
	go func() {
		_, _ = io.Copy(valve{w, out}, in)
		out.Close()
	}()
	_, _ = io.Copy(in, out)
}

func (w *Wire) dial() (net.Conn, error) {
	err := errors.New("no server")
	for _, address := range w.to {
		var out net.Conn
		if out, err = net.DialTimeout("tcp", address, dialTimeout); err == nil {
			return out, nil
		}
	}
	return nil, err
}

// keep records both ends of a forwarded connection, unless the wire is cut.
func (w *Wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		if w.cut {
			drop(c)
		} else {
			w.open[c] = true
		}
	}
	return !w.cut
}

func (w *Wire) forget(ends ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		c.Close()
		delete(w.open, c)
	}
}

// valve is the direction from clients to a server.
type valve struct {
	w   *Wire
	out net.Conn
}

func (v valve) Write(b []byte) (int, error) {
	v.w.pace()
	n, err := v.out.Write(b)
	v.w.count(n)
	return n, err
}
