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

// ServePort serves a stream of a manager or gateway to a loopback port of a kernel, and closes it.
func (a *Agent) ServePort(ctx context.Context, stream net.Conn) {
	open := a.meter.streams.WithLabelValues(portStream)
	open.Inc()
	defer open.Dec()
	portstream.Serve(ctx, stream, a.dial)
}

// portStream is the label of these streams in metrics.
const portStream = "Port"

func (a *Agent) dial(ctx context.Context, kernel string, port uint16) (net.Conn, error) {
	if err := a.available(); err != nil {
		return nil, err
	}
	if port == 0 {
		return nil, fmt.Errorf("port must be a number from 1 to 65535: %w", errdefs.ErrInvalidArgument)
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
