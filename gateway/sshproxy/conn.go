package sshproxy

import (
	"io"
	"net"
	"time"
)

// asConn adapts a stream to net.Conn, as package ssh requires. Deadlines are never set.
func asConn(s io.ReadWriteCloser) net.Conn {
	if c, ok := s.(net.Conn); ok {
		return c
	}
	return streamConn{s}
}

type streamConn struct{ io.ReadWriteCloser }

type streamAddr struct{}

func (streamAddr) Network() string { return "kernel" }
func (streamAddr) String() string  { return "kernel" }

func (streamConn) LocalAddr() net.Addr              { return streamAddr{} }
func (streamConn) RemoteAddr() net.Addr             { return streamAddr{} }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }
