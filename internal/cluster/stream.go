package cluster

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// rawStream is the first byte of a stream that Peer.Open opens. Those of gRPC begin with a "P", of
// the preface of HTTP/2.
const rawStream = 1

// kindTime bounds the time until the first byte of a stream.
const kindTime = 10 * time.Second

// calls are the streams of a tunnel on which the manager makes calls.
type calls struct {
	*yamux.Session
	streams chan net.Conn
}

// split passes streams of bytes to the node's Streams, and returns a listener of the others.
func (n *Node) split(ctx context.Context, mux *yamux.Session) net.Listener {
	c := &calls{mux, make(chan net.Conn)}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			stream, err := mux.Accept()
			if err != nil {
				return
			}
			go n.sort(ctx, c, stream)
		}
	}()
	return c
}

// sort reads the first byte of a stream.
func (n *Node) sort(ctx context.Context, c *calls, stream net.Conn) {
	var kind [1]byte
	_ = stream.SetReadDeadline(time.Now().Add(kindTime))
	if _, err := stream.Read(kind[:]); err != nil {
		_ = stream.Close()
		return
	}
	_ = stream.SetReadDeadline(time.Time{})
	if kind[0] == rawStream && n.cfg.Streams != nil {
		n.cfg.Streams(ctx, stream)
		return
	}
	select {
	case c.streams <- &begun{Conn: stream, first: kind[:]}:
	case <-c.CloseChan():
		_ = stream.Close()
	}
}

// Accept implements net.Listener.
func (c *calls) Accept() (net.Conn, error) {
	select {
	case stream := <-c.streams:
		return stream, nil
	case <-c.CloseChan():
		return nil, net.ErrClosed
	}
}

// begun is a stream whose first byte has been read.
type begun struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 && len(p) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// joined writes each frame of yamux at once. yamux writes the header and the data of a frame one after
// the other, from one goroutine, and TLS splits a frame into records of 16 KiB: each would be a system call.
type joined struct {
	net.Conn
	below *gathered // below TLS; nil without
	frame []byte    // a header that waits for its data
}

// join returns a connection for yamux. The TLS connection is on a gathered one.
func join(conn *tls.Conn) *joined {
	below, _ := conn.NetConn().(*gathered)
	return &joined{Conn: conn, below: below}
}

// The header of a frame of yamux: a version, a type, two bytes of flags, four of the stream and four of the
// length, see its specification.
const (
	frameHeader = 12
	dataFrame   = 0
)

// Write implements net.Conn.
func (j *joined) Write(b []byte) (int, error) {
	if len(j.frame) == 0 && len(b) == frameHeader && b[1] == dataFrame && binary.BigEndian.Uint32(b[8:]) > 0 {
		j.frame = append(j.frame, b...)
		return len(b), nil
	}
	if len(j.frame) == 0 {
		return j.Conn.Write(b)
	}
	j.frame = append(j.frame, b...)
	n, err := j.write(j.frame)
	j.frame = j.frame[:0]
	if cap(j.frame) > keptFrame {
		j.frame = nil
	}
	return max(0, n-frameHeader), err
}

func (j *joined) write(frame []byte) (int, error) {
	if j.below == nil || len(frame) <= record {
		return j.Conn.Write(frame)
	}
	j.below.buffer()
	n, err := j.Conn.Write(frame)
	if failed := j.below.flush(); err == nil && failed != nil {
		return 0, failed
	}
	return n, err
}

// gathered is the connection below TLS. It writes the records of one frame at once.
type gathered struct {
	net.Conn

	mu      sync.Mutex
	buffers bool // Write collects records until flush
	records []byte
}

// Write implements net.Conn.
func (g *gathered) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.buffers {
		g.records = append(g.records, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// buffer makes Write collect records until flush.
func (g *gathered) buffer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.buffers = true
}

// flush writes the collected records with one call.
func (g *gathered) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.Conn.Write(g.records)
	g.buffers, g.records = false, g.records[:0]
	if cap(g.records) > 2*keptFrame {
		g.records = nil
	}
	return err
}

const (
	// record is the data of the largest record of TLS.
	record = 16 << 10
	// keptFrame is the largest buffer that is kept for the next frame.
	keptFrame = 64<<10 + frameHeader
)
