package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/yamux"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/internal/requestid"
)

// Application protocols of the cluster listener.
const (
	protoJoin   = "berth-join"
	protoTunnel = "berth-tunnel"
)

const (
	handshakeTimeout = 5 * time.Second
	// An unresponsive peer is detected after at most one interval and one write timeout: 3 s +
	// 5 s, less than the promised 10 s.
	keepAlive    = 3 * time.Second
	writeTimeout = 5 * time.Second
	// streamWindow lets one log or terminal stream fill a 100 ms link at 80 Mbit/s.
	streamWindow = 1 << 20
	// maxMessage is enough for the report of a node with thousands of kernels.
	maxMessage = 16 << 20
)

func muxConfig(log *slog.Logger) *yamux.Config {
	c := yamux.DefaultConfig()
	c.KeepAliveInterval = keepAlive
	c.ConnectionWriteTimeout = writeTimeout
	c.StreamOpenTimeout = 2 * writeTimeout
	c.MaxStreamWindowSize = streamWindow
	c.LogOutput = nil
	c.Logger = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	return c
}

// clientOver returns a gRPC client whose connections come from dial, which encrypts them.
func clientOver(name string, dial func(context.Context) (net.Conn, error)) (*grpc.ClientConn, error) {
	c, err := grpc.NewClient("passthrough:///"+name,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(requestid.UnaryClient), grpc.WithChainStreamInterceptor(requestid.StreamClient),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("grpc client of %s: %w", name, err)
	}
	return c, nil
}
