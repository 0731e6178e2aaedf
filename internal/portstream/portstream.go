// Package portstream carries a connection to a port of a kernel, or to its SSH server, over one stream
// between a manager or gateway and an agent. Dial and DialSSH are the caller's side, Accept the agent's
// side.
//
// A stream begins with a request, which is a version, the kernel and the port, and the agent answers
// with a status. Port 0 is the SSH server of the runner: its bytes follow the answer unchanged. For
// other ports, data follows in both directions, in frames: two bytes of length, and that number of
// bytes. An empty frame ends the data of its direction. A stream that ends without one was aborted.
package portstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	version     = 1
	requestSize = 1 + len(uuid.UUID{}) + 2
	// dialTime bounds the time until the agent has answered.
	dialTime = 30 * time.Second
	// maxReason bounds the message of an error.
	maxReason = 1 << 10
)

// Opener opens streams to an agent.
type Opener interface {
	Open(ctx context.Context) (net.Conn, error)
}

// SSH is the port that stands for the SSH server of a kernel, which listens on none.
const SSH = 0

// Dial connects to a loopback port in a kernel and returns when the agent has connected. The
// connection ends with ctx. The error has the class UNAVAILABLE while no program listens.
func Dial(ctx context.Context, to Opener, kernel uuid.UUID, port int) (*Conn, error) {
	if port == SSH {
		return nil, fmt.Errorf("port must be a number from 1 to 65535: %w", errdefs.ErrInvalidArgument)
	}
	return dial(ctx, to, kernel, port)
}

// DialSSH starts the SSH server of a kernel, and returns the stream of its stdin and stdout. The server
// ends with the stream, and the stream with ctx.
func DialSSH(ctx context.Context, to Opener, kernel uuid.UUID) (io.ReadWriteCloser, error) {
	c, err := dial(ctx, to, kernel, SSH)
	if err != nil {
		return nil, err
	}
	return raw{c.stream, c}, nil
}

// raw is a stream without frames.
type raw struct {
	io.ReadWriter
	io.Closer
}

func dial(ctx context.Context, to Opener, kernel uuid.UUID, port int) (*Conn, error) {
	stream, err := to.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a stream to the agent: %w: %w", err, errdefs.ErrUnavailable)
	}
	c := newConn(stream, addr{kernel, port})
	c.stop = context.AfterFunc(ctx, func() { _ = c.Close() })
	if err := c.ask(); err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return c, nil
}

// Refused reports whether an error of Dial says that no program listens on the port.
func Refused(err error) bool { return errdefs.IsUnavailable(err) }

func (c *Conn) ask() error {
	_ = c.stream.SetDeadline(time.Now().Add(dialTime))
	request := append([]byte{version}, c.addr.kernel[:]...)
	if _, err := c.stream.Write(binary.BigEndian.AppendUint16(request, uint16(c.addr.port))); err != nil {
		return fmt.Errorf("ask for port %d of kernel %s: %w: %w", c.addr.port, c.addr.kernel, err, errdefs.ErrUnavailable)
	}
	var head [3]byte
	if _, err := io.ReadFull(c.stream, head[:]); err != nil {
		return fmt.Errorf("answer for port %d of kernel %s: %w: %w", c.addr.port, c.addr.kernel, err, errdefs.ErrUnavailable)
	}
	_ = c.stream.SetDeadline(time.Time{})
	if code := codes.Code(head[0]); code != codes.OK {
		reason := make([]byte, min(int(binary.BigEndian.Uint16(head[1:])), maxReason))
		if _, err := io.ReadFull(c.stream, reason); err != nil {
			return fmt.Errorf("reason for port %d of kernel %s: %w: %w", c.addr.port, c.addr.kernel, err, errdefs.ErrUnavailable)
		}
		return errgrpc.ToNative(status.Error(code, string(reason)))
	}
	return nil
}

// Call is the request of a stream.
type Call struct {
	Kernel string
	Port   uint16

	stream net.Conn
}

// Accept reads the request of a stream. The caller answers with Connect or Answer, and closes the stream
// with Close.
func Accept(stream net.Conn) (*Call, error) {
	_ = stream.SetDeadline(time.Now().Add(dialTime))
	var request [requestSize]byte
	if _, err := io.ReadFull(stream, request[:]); err != nil {
		_ = stream.Close()
		return nil, err
	}
	c := &Call{Kernel: uuid.UUID(request[1:17]).String(), Port: binary.BigEndian.Uint16(request[17:]), stream: stream}
	if request[0] != version {
		err := fmt.Errorf("stream of version %d, not %d: %w", request[0], version, errdefs.ErrInvalidArgument)
		_, _ = c.Answer(err)
		_ = stream.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the stream.
func (c *Call) Close() error { return c.stream.Close() }

// Answer answers the request: with an error, or nil. Then it returns the stream.
func (c *Call) Answer(err error) (net.Conn, error) {
	s, _ := status.FromError(errgrpc.ToGRPC(err))
	reason := s.Message()[:min(len(s.Message()), maxReason)]
	answer := binary.BigEndian.AppendUint16([]byte{byte(s.Code())}, uint16(len(reason)))
	if _, write := c.stream.Write(append(answer, reason...)); write != nil && err == nil {
		return nil, write
	}
	_ = c.stream.SetDeadline(time.Time{})
	return c.stream, err
}

// Connect connects to the port, answers, and copies data in both directions until both have ended, one has
// failed, or ctx ends. It closes the stream.
func (c *Call) Connect(ctx context.Context, connect func(ctx context.Context, kernel string, port uint16) (net.Conn, error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.Close()
	context.AfterFunc(ctx, func() { _ = c.Close() })
	to, err := connect(ctx, c.Kernel, c.Port)
	if err == nil {
		defer to.Close()
		context.AfterFunc(ctx, func() { _ = to.Close() })
	}
	stream, err := c.Answer(err)
	if err != nil {
		return
	}
	join(ctx, cancel, newConn(stream, addr{}), to)
}

// join copies between a stream and a connection, and calls cancel at the end of both.
func join(ctx context.Context, cancel func(), c *Conn, to net.Conn) {
	go func() {
		// An error here ends both directions, because no one would read the answer.
		if _, err := io.Copy(to, reader{c}); err != nil {
			cancel()
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		// The stream ends when the caller disconnects, perhaps before the answer is complete.
		_, _ = c.stream.Read(make([]byte, 1))
		cancel()
	}()
	if _, err := c.ReadFrom(to); err == nil {
		_ = c.CloseWrite()
		<-ctx.Done()
	}
}

// reader hides everything but Read, so that io.Copy does not look for other ways.
type reader struct{ io.Reader }

// errAborted is the end of a stream without the end of its data.
var errAborted = errors.New("the stream was aborted")
