// Package portstream carries a connection to a port of a kernel over one stream between a manager
// or gateway and an agent. Dial is the caller's side, Serve the agent's side.
//
// A stream begins with a request, which is a version, the kernel and the port, and the agent
// answers with a status. Data follows in both directions, in frames: two bytes of length, and that
// number of bytes. An empty frame ends the data of its direction. A stream that ends without one
// was aborted.
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

// Dial connects to a loopback port in a kernel and returns when the agent has connected. The
// connection ends with ctx. The error has the class UNAVAILABLE while no program listens.
func Dial(ctx context.Context, to Opener, kernel uuid.UUID, port int) (*Conn, error) {
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

// Serve answers the request of a stream: it connects, and copies data in both directions until both
// have ended, one has failed, or ctx ends. It closes the stream.
func Serve(ctx context.Context, stream net.Conn, connect func(ctx context.Context, kernel string, port uint16) (net.Conn, error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newConn(stream, addr{})
	defer c.Close()
	context.AfterFunc(ctx, func() { _ = c.Close() })
	to, err := c.serve(ctx, connect)
	if err != nil {
		return
	}
	defer to.Close()
	context.AfterFunc(ctx, func() { _ = to.Close() })
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

func (c *Conn) serve(ctx context.Context, connect func(context.Context, string, uint16) (net.Conn, error)) (net.Conn, error) {
	_ = c.stream.SetDeadline(time.Now().Add(dialTime))
	var request [requestSize]byte
	if _, err := io.ReadFull(c.stream, request[:]); err != nil {
		return nil, err
	}
	var to net.Conn
	kernel, port := uuid.UUID(request[1:17]).String(), binary.BigEndian.Uint16(request[17:])
	err := fmt.Errorf("stream of version %d, not %d: %w", request[0], version, errdefs.ErrInvalidArgument)
	if request[0] == version {
		to, err = connect(ctx, kernel, port)
	}
	s, _ := status.FromError(errgrpc.ToGRPC(err))
	reason := s.Message()[:min(len(s.Message()), maxReason)]
	answer := binary.BigEndian.AppendUint16([]byte{byte(s.Code())}, uint16(len(reason)))
	if _, write := c.stream.Write(append(answer, reason...)); write != nil && err == nil {
		_ = to.Close()
		return nil, write
	}
	_ = c.stream.SetDeadline(time.Time{})
	return to, err
}

// reader hides everything but Read, so that io.Copy does not look for other ways.
type reader struct{ io.Reader }

// errAborted is the end of a stream without the end of its data.
var errAborted = errors.New("the stream was aborted")
