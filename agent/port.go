package agent

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/portstream"
)

// The labels of these streams in metrics.
const (
	portStream = "Port"
	sshStream  = "SSH"
)

// ServeStream serves a stream of a manager or gateway to a loopback port of a kernel, or to its SSH server,
// and closes it.
func (a *Agent) ServeStream(ctx context.Context, stream net.Conn) {
	call, err := portstream.Accept(stream)
	if err != nil {
		return
	}
	kind := portStream
	if call.Port == portstream.SSH {
		kind = sshStream
	}
	open := a.meter.streams.WithLabelValues(kind)
	open.Inc()
	defer open.Dec()
	if kind == sshStream {
		a.serveSSH(ctx, call)
		return
	}
	call.Connect(ctx, a.dial)
}

func (a *Agent) dial(ctx context.Context, kernel string, port uint16) (net.Conn, error) {
	if err := a.available(); err != nil {
		return nil, err
	}
	k, err := a.kernels.Get(kernel)
	if err != nil {
		return nil, err
	}
	conn, err := k.Dial(ctx, port)
	if errors.Is(err, unix.ECONNREFUSED) {
		// No process listens on the port yet: the caller can retry.
		return nil, fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
	}
	return conn, err
}
