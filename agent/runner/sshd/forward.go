package sshd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshmux"
)

// directTCP connects a channel with a port, out of the container's own network (-L, -D).
func (c *connection) directTCP(n newChannel) {
	var q struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if ssh.Unmarshal(n.ExtraData(), &q) != nil || q.Port == 0 || q.Port > 65535 {
		_ = n.Reject(ssh.ConnectionFailed, fmt.Sprintf("port %d is not between 1 and 65535", q.Port))
		return
	}
	c.direct(n, "tcp", net.JoinHostPort(q.Host, strconv.Itoa(int(q.Port))))
}

// directSocket connects a channel to a unix socket of the container.
func (c *connection) directSocket(n newChannel) {
	var q struct {
		Path     string
		Reserved string
		Number   uint32
	}
	if ssh.Unmarshal(n.ExtraData(), &q) != nil || q.Path == "" {
		_ = n.Reject(ssh.ConnectionFailed, "the request names no socket")
		return
	}
	c.direct(n, "unix", q.Path)
}

func (c *connection) direct(n newChannel, network, address string) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	go func() {
		select {
		case <-c.gone():
			cancel()
		case <-ctx.Done():
		}
	}()
	var d net.Dialer
	to, err := d.DialContext(ctx, network, address)
	if err != nil {
		_ = n.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	ch, requests, err := n.Accept()
	if err != nil {
		to.Close()
		return
	}
	go sshmux.Discard(requests) // ends with the channel
	join(ch, to.(half))
}

// listener is a port or socket whose connections are forwarded to the client.
type listener struct {
	all []net.Listener
}

// Close closes all addresses.
func (l *listener) Close() {
	for _, one := range l.all {
		one.Close()
	}
}

// serve passes connections to deliver until the listener is closed.
func (l *listener) serve(deliver func(net.Conn)) {
	var all sync.WaitGroup
	for _, one := range l.all {
		all.Go(func() {
			for {
				conn, err := one.Accept()
				if err != nil {
					return
				}
				go deliver(conn) // ends with the connection
			}
		})
	}
	all.Wait()
}

// hold stores a listener under its key until the client cancels it or the connection ends.
func (c *connection) hold(key string, l *listener) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return errClosed
	case c.listeners[key] != nil:
		return fmt.Errorf("%s is forwarded already", key)
	case len(c.listeners) >= maxForwards:
		return fmt.Errorf("a connection forwards at most %d ports and sockets", maxForwards)
	}
	c.listeners[key] = l
	return nil
}

func (c *connection) drop(key string) bool {
	c.mu.Lock()
	l := c.listeners[key]
	delete(c.listeners, key)
	c.mu.Unlock()
	if l == nil {
		return false
	}
	l.Close()
	return true
}

// bind is a request to listen on a port.
type bind struct {
	Host string
	Port uint32
}

func (b bind) key() string { return fmt.Sprintf("tcp %s %d", b.Host, b.Port) }

// forwardTCP listens on a port for the client (-R). The address is always loopback, as with
// OpenSSH's default GatewayPorts=no, so other containers cannot reach the port.
func (c *connection) forwardTCP(payload []byte) (ok bool, answer []byte) {
	var q bind
	if ssh.Unmarshal(payload, &q) != nil || q.Port > 65535 {
		return false, nil
	}
	l, port, err := listenLoopback(q.Port)
	if err != nil {
		return false, nil
	}
	if q.Port == 0 {
		answer = ssh.Marshal(struct{ Port uint32 }{port})
	}
	at := bind{q.Host, port}
	if c.hold(at.key(), l) != nil {
		l.Close()
		return false, nil
	}
	go l.serve(func(conn net.Conn) { // ends when the listener is dropped
		host, from := origin(conn)
		c.deliver(conn, "forwarded-tcpip", ssh.Marshal(struct {
			Host       string
			Port       uint32
			Origin     string
			OriginPort uint32
		}{at.Host, at.Port, host, from}))
	})
	return true, answer
}

// listenLoopback listens on one port of both loopback addresses, or only of 127.0.0.1 without IPv6.
func listenLoopback(port uint32) (*listener, uint32, error) {
	first, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, 0, err
	}
	port = uint32(first.Addr().(*net.TCPAddr).Port)
	l := &listener{all: []net.Listener{first}}
	if second, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", port)); err == nil {
		l.all = append(l.all, second)
	}
	return l, port, nil
}

func origin(conn net.Conn) (host string, port uint32) {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.IP.String(), uint32(a.Port)
	}
	return "", 0
}

func (c *connection) cancelTCP(payload []byte) bool {
	var q bind
	return ssh.Unmarshal(payload, &q) == nil && c.drop(q.key())
}

// forwardSocket listens on a unix socket for the client. Only the container's user can connect. An
// existing file is not replaced.
func (c *connection) forwardSocket(payload []byte) bool {
	var q struct{ Path string }
	if ssh.Unmarshal(payload, &q) != nil || q.Path == "" {
		return false
	}
	one, err := listenPrivate(q.Path)
	if err != nil {
		return false
	}
	l := &listener{all: []net.Listener{one}}
	if c.hold("unix "+q.Path, l) != nil {
		l.Close()
		return false
	}
	go l.serve(func(conn net.Conn) { // ends when the listener is dropped
		c.deliver(conn, "forwarded-streamlocal@openssh.com", ssh.Marshal(struct{ Path, Reserved string }{q.Path, ""}))
	})
	return true
}

// listenPrivate creates a socket that only its owner can use from the beginning: bind copies the
// mode of the descriptor to the file.
func listenPrivate(path string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
			return err
		}
		return failed
	}}
	return private.Listen(context.Background(), "unix", path)
}

func (c *connection) cancelSocket(payload []byte) bool {
	var q struct{ Path string }
	return ssh.Unmarshal(payload, &q) == nil && c.drop("unix "+q.Path)
}

// deliver opens a channel to the client for an accepted connection and joins the two.
func (c *connection) deliver(conn net.Conn, kind string, extra []byte) {
	defer conn.Close()
	if _, why := c.enter(false); why != "" {
		return
	}
	defer c.leave(false)
	ch, err := c.link.OpenChannel(kind, extra)
	if err != nil {
		return
	}
	join(ch, conn.(half))
}
