package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const dialTimeout = 2 * time.Second

// Wire is the network between people and servers. It passes every connection on to
// the first of several servers that takes it, counts, and can be cut.
type Wire struct {
	to       []string
	listener net.Listener
	sent     atomic.Int64 // bytes from people

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool // both ends of what passes
}

// Open listens, and returns the URL.
func (w *Wire) Open() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	w.listener, w.open = l, map[net.Conn]bool{}
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

// Close takes no more connections.
func (w *Wire) Close() error {
	if w.listener == nil {
		return nil
	}
	w.Cut()
	return w.listener.Close()
}

// Sent is how many bytes servers were given so far, with all that goes around files.
func (w *Wire) Sent() int64 { return w.sent.Load() }

// Cut ends every connection in the midst of what it carries, and each that comes.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for c := range w.open {
		drop(c)
	}
}

// Mend ends the cut.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// drop closes a connection so that its other end is told of an error.
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
		_, _ = io.Copy(io.MultiWriter(out, counter{&w.sent}), in)
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

// keep notes the ends of what passes, unless it is cut.
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

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}
