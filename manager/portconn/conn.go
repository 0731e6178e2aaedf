// Package portconn makes a net.Conn of a connection that an agent forwards to a loopback port of a
// kernel. Everything in a manager or gateway that speaks to a port uses it.
package portconn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
)

// chunk limits one message, far below what gRPC accepts.
const chunk = 64 << 10

// Conn is a connection to a port. It has no deadlines; its context and Close end it.
type Conn struct {
	stream agentpb.Agent_DialClient
	end    context.CancelFunc
	addr   addr

	rest []byte // received and not read yet

	mu     sync.Mutex // serializes the senders
	closed bool       // for writing
}

// Dial connects to a port of a kernel and returns when the agent has connected. The connection ends
// with ctx. The error has the class UNAVAILABLE while no program listens.
func Dial(ctx context.Context, rpc agentpb.AgentClient, kernel uuid.UUID, port int) (*Conn, error) {
	ctx, end := context.WithCancel(ctx)
	stream, err := rpc.Dial(ctx)
	if err == nil {
		err = stream.Send(&agentpb.DialData{Target: &agentpb.DialTarget{KernelId: kernel.String(), Port: uint32(port)}})
	}
	if err == nil || errors.Is(err, io.EOF) { // Recv has the reason for EOF
		_, err = stream.Recv() // an empty message confirms the connection
	}
	if err != nil {
		end()
		return nil, errgrpc.ToNative(err)
	}
	return &Conn{stream: stream, end: end, addr: addr{kernel, port}}, nil
}

// Refused reports whether an error of Dial says that no program listens on the port.
func Refused(err error) bool { return errdefs.IsUnavailable(err) }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		m, err := c.stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return 0, io.EOF
			}
			return 0, errgrpc.ToNative(err)
		}
		c.rest = m.Data
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(b) > 0 {
		if c.closed {
			return n, net.ErrClosed
		}
		part := b[:min(len(b), chunk)]
		if err := c.stream.Send(&agentpb.DialData{Data: part}); err != nil {
			if errors.Is(err, io.EOF) {
				err = net.ErrClosed
			}
			return n, err
		}
		n, b = n+len(part), b[len(part):]
	}
	return n, nil
}

// CloseWrite ends the data to the port; the program can still answer.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.stream.CloseSend()
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.end()
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.addr }

// SetDeadline implements net.Conn; there are no deadlines.
func (c *Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn; there are no deadlines.
func (c *Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn; there are no deadlines.
func (c *Conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// addr is a port of a kernel.
type addr struct {
	kernel uuid.UUID
	port   int
}

func (a addr) Network() string { return "kernel" }
func (a addr) String() string  { return net.JoinHostPort(a.kernel.String(), strconv.Itoa(a.port)) }
