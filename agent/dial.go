package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	goruntime "runtime"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
)

const (
	architecture = goruntime.GOARCH
	dialChunk    = 32 << 10
)

type dialStream = grpc.BidiStreamingServer[agentpb.DialData, agentpb.DialData]

// Dial forwards one connection to a loopback port of a kernel.
func (s *server) Dial(stream dialStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	target := first.GetTarget()
	if target == nil || target.Port < 1 || target.Port > 65535 {
		return fmt.Errorf("first message carries no target with a port: %w", errdefs.ErrInvalidArgument)
	}
	k, err := s.a.kernels.Get(target.KernelId)
	if err != nil {
		return err
	}
	conn, err := k.Dial(stream.Context(), uint16(target.Port))
	if errors.Is(err, unix.ECONNREFUSED) {
		// No process listens on the port yet: the caller can retry.
		return fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	// An empty message confirms that the connection is open.
	if err := stream.Send(&agentpb.DialData{}); err != nil {
		return err
	}
	if len(first.Data) > 0 {
		if _, err := conn.Write(first.Data); err != nil {
			return err
		}
	}
	go receive(stream, conn)
	buf := make([]byte, dialChunk)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if err := stream.Send(&agentpb.DialData{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("port %d of kernel %s: %w: %w", target.Port, target.KernelId, err, errdefs.ErrUnavailable)
		}
	}
}

// receive copies data from the caller to the connection. At the end of the caller's data it closes
// only the write side, because the other side may still answer; if the stream broke, it closes the
// connection.
func receive(stream dialStream, conn net.Conn) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			conn.Close()
			return
		}
		if _, err := conn.Write(m.Data); err != nil {
			return // the reading side fails as well
		}
	}
}
