package sshd

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// netConn adapts a stream to net.Conn, as package ssh requires. Deadlines are never set.
func netConn(s io.ReadWriteCloser) net.Conn {
	if c, ok := s.(net.Conn); ok {
		return c
	}
	return streamConn{s}
}

type streamConn struct{ io.ReadWriteCloser }

type streamAddr struct{}

func (streamAddr) Network() string { return "stream" }
func (streamAddr) String() string  { return "stream" }

func (streamConn) LocalAddr() net.Addr              { return streamAddr{} }
func (streamConn) RemoteAddr() net.Addr             { return streamAddr{} }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }

// endpoints returns the values of SSH_CLIENT and SSH_CONNECTION. Without addresses, it returns the
// values that OpenSSH uses on a pipe.
func endpoints(c interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}) (client, connection string) {
	host, port := endpoint(c.RemoteAddr())
	at, on := endpoint(c.LocalAddr())
	return fmt.Sprintf("%s %s %s", host, port, on), fmt.Sprintf("%s %s %s %s", host, port, at, on)
}

func endpoint(a net.Addr) (host, port string) {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.IP.String(), fmt.Sprint(t.Port)
	}
	return "UNKNOWN", "65535"
}

// half is a stream whose two directions can be closed separately.
type half interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies in both directions until both have ended. When one direction ends, only that
// direction is closed.
func join(a, b half) {
	var both sync.WaitGroup
	both.Go(func() { pump(a, b) })
	both.Go(func() { pump(b, a) })
	both.Wait()
	a.Close()
	b.Close()
}

func pump(to, from half) {
	_, err := io.Copy(to, from)
	_ = to.CloseWrite()
	if err != nil { // without a receiver, the sender must not block
		to.Close()
		from.Close()
	}
}

// environ sets a variable in a list, and replaces one with the same name.
func environ(env []string, name, value string) []string {
	for i, v := range env {
		if strings.HasPrefix(v, name+"=") {
			env[i] = name + "=" + value
			return env
		}
	}
	return append(env, name+"="+value)
}
