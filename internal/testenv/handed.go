package testenv

import (
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync/atomic"
)

// Handed counts the bytes of files that a server, which has not started yet, passes to its
// connections as a file, so that the kernel sends them.
func Handed(s *httptest.Server) *atomic.Int64 {
	l := handedListener{s.Listener, new(atomic.Int64)}
	s.Listener = l
	return l.bytes
}

type handedListener struct {
	net.Listener
	bytes *atomic.Int64
}

func (l handedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return handedConn{c, l.bytes}, err
}

type handedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c handedConn) ReadFrom(src io.Reader) (int64, error) {
	of := src
	if rest, ok := src.(*io.LimitedReader); ok {
		of = rest.R
	}
	n, err := io.Copy(c.Conn, src)
	if _, ok := of.(*os.File); ok {
		c.bytes.Add(n)
	}
	return n, err
}
