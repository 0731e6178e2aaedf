package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const dialTimeout = 2 * time.Second

// Wire is the network between people and servers. It passes every connection on to
// the first of several servers that takes it, counts, and can be held up and cut.
type Wire struct {
	to       []string
	listener net.Listener

	mu   sync.Mutex
	sent int64             // bytes from people
	hold int64             // no more than these are passed on; 0 is not a bound
	turn chan struct{}     // closed when hold or cut changes
	held int               // connections that have begun to wait for this turn
	cut  bool              // none is taken
	open map[net.Conn]bool // both ends of what passes
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

// Close takes no more connections.
func (w *Wire) Close() error {
	if w.listener == nil {
		return nil
	}
	w.Cut()
	return w.listener.Close()
}

// Sent is how many bytes servers were given so far, with all that goes around files.
func (w *Wire) Sent() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// Hold passes on so many bytes more, and then none until Mend or Cut. At most one
// buffer of each connection goes beyond.
func (w *Wire) Hold(more int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold = w.sent + more
}

// Held reports whether someone wants to send more than is let through.
func (w *Wire) Held() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held > 0
}

// Cut ends every connection in the midst of what it carries, and each that comes.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for c := range w.open {
		drop(c)
	}
	w.changed()
}

// Mend ends Hold and Cut.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
	w.changed()
}

// changed lets those continue that were held. The caller has the lock.
func (w *Wire) changed() {
	w.hold, w.held = 0, 0 // they wait no more, though they may not have noticed
	close(w.turn)
	w.turn = make(chan struct{})
}

// pace waits until more may pass.
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

// valve is the way from people to a server.
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
