package portstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
)

const (
	headSize = 2
	// frameSize is the data of the largest frame that is sent. It fits io.Copy's buffers.
	frameSize = 32 << 10
)

// Conn is a connection to a port.
type Conn struct {
	stream net.Conn
	addr   addr
	stop   func() bool // releases the context

	// The reader's:
	head  [headSize]byte
	begun int  // bytes of head that have been read, which a deadline can interrupt
	left  int  // bytes of the frame that have not been read
	ended bool // the other side has no more data

	mu     sync.Mutex // serializes the writers
	closed bool       // for writing
}

func newConn(stream net.Conn, to addr) *Conn { return &Conn{stream: stream, addr: to} }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for c.left == 0 && !c.ended {
		n, err := c.stream.Read(c.head[c.begun:])
		if c.begun += n; c.begun == headSize {
			c.begun, c.left = 0, int(binary.BigEndian.Uint16(c.head[:]))
			c.ended = c.left == 0
		} else if err != nil {
			return 0, aborted(err)
		}
	}
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.stream.Read(b[:min(len(b), c.left)])
	c.left -= n
	if n > 0 {
		return n, nil
	}
	return 0, aborted(err)
}

func aborted(err error) error {
	if errors.Is(err, io.EOF) {
		err = errAborted
	}
	return fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
}

var frames = sync.Pool{New: func() any { return new([headSize + frameSize]byte) }}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	frame := frames.Get().(*[headSize + frameSize]byte)
	defer frames.Put(frame)
	for len(b) > 0 {
		part := copy(frame[headSize:], b)
		if err := c.send(frame, part); err != nil {
			return n, err
		}
		n, b = n+part, b[part:]
	}
	return n, nil
}

// send sends a frame with n bytes of data.
func (c *Conn) send(frame *[headSize + frameSize]byte, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	binary.BigEndian.PutUint16(frame[:], uint16(n))
	_, err := c.stream.Write(frame[:headSize+n])
	return err
}

// ReadFrom implements io.ReaderFrom. It copies no data in between. While it waits, it keeps only a
// small buffer.
func (c *Conn) ReadFrom(r io.Reader) (all int64, err error) {
	var small [smallRead]byte
	for {
		n, err := r.Read(small[:])
		if n > 0 {
			if _, err := c.Write(small[:n]); err != nil {
				return all, err
			}
			all += int64(n)
		}
		if n == len(small) && err == nil {
			var more int64
			more, err = c.drain(r)
			all += more
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// smallRead is large enough for most messages of interactive programs.
const smallRead = 4 << 10

// drain copies with a large buffer while the reader gives more than a small one would take.
func (c *Conn) drain(r io.Reader) (all int64, err error) {
	frame := frames.Get().(*[headSize + frameSize]byte)
	defer frames.Put(frame)
	for {
		n, err := r.Read(frame[headSize:])
		if n > 0 {
			if err := c.send(frame, n); err != nil {
				return all, err
			}
			all += int64(n)
		}
		if err != nil || n < smallRead {
			return all, err
		}
	}
}

// CloseWrite ends the data to the other side, which can still answer.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	_, err := c.stream.Write(make([]byte, headSize))
	return err
}

// Close implements net.Conn. It aborts the directions that have not ended.
func (c *Conn) Close() error {
	if c.stop != nil {
		c.stop()
	}
	return c.stream.Close()
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.addr }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.stream.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.stream.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.stream.SetWriteDeadline(t) }

// addr is a port of a kernel.
type addr struct {
	kernel uuid.UUID
	port   int
}

func (a addr) Network() string { return "kernel" }
func (a addr) String() string  { return net.JoinHostPort(a.kernel.String(), strconv.Itoa(a.port)) }
