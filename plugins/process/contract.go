package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Contract describes one kind of plugin to hosts and plugins.
type Contract struct {
	Service string // full name of the gRPC service
	// CookieKey and CookieValue are an environment variable that a host sets. A plugin that a
	// person starts without it prints an explanation and exits.
	CookieKey, CookieValue string
	// Versions are the supported versions. Host and plugin select the highest common one.
	Versions []int
	// Deadline returns the timeout of a unary call by the full name of its method.
	Deadline func(method string) time.Duration
}

// Newest returns the highest supported version.
func (c Contract) Newest() int { return slices.Max(c.Versions) }

// Handshake returns go-plugin's name for the cookie.
func (c Contract) Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: c.CookieKey, MagicCookieValue: c.CookieValue}
}

// Serve is the main function of a plugin. It serves the services that register adds to the host
// that started the process, and returns when the host disconnects.
func (c Contract) Serve(register func(*grpc.Server)) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  c.Handshake(),
		VersionedPlugins: c.sets(register),
		GRPCServer:       plugin.DefaultGRPCServer,
		Logger:           Logger(),
	})
}

func (c Contract) sets(register func(*grpc.Server)) map[int]plugin.PluginSet {
	out := map[int]plugin.PluginSet{}
	for _, v := range c.Versions {
		out[v] = plugin.PluginSet{c.Service: &glue{register: register}}
	}
	return out
}

// deadline adds a deadline to a unary call, unless the caller's context ends earlier.
func (c Contract) deadline(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, c.Deadline(method))
	defer cancel()
	return next(ctx, method, req, resp, cc, opts...)
}

// glue implements go-plugin's interface for both sides of the service.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server) // nil on the host
}

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if g.register == nil {
		return errors.New("no implementation to serve")
	}
	g.register(s)
	return nil
}

func (g *glue) GRPCClient(ctx context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &link{conn: conn, exited: ctx.Done()}, nil
}

// link is a connection to a plugin. exited is closed when its process has exited.
type link struct {
	conn   *grpc.ClientConn
	exited <-chan struct{}
}
