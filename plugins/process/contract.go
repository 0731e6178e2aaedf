package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Contract is what host and plugins of one kind agree on.
type Contract struct {
	Service string // its name
	// The cookie is in the environment of a plugin that a host has started: a program
	// that someone starts by hand says so and ends.
	CookieKey, CookieValue string
	// Versions that this side speaks. Host and plugin agree on the highest that both
	// have.
	Versions []int
	// Deadline of a unary call, by the full name of its method.
	Deadline func(method string) time.Duration
}

// Newest is the newest version.
func (c Contract) Newest() int { return slices.Max(c.Versions) }

// Handshake is what go-plugin calls the cookie.
func (c Contract) Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: c.CookieKey, MagicCookieValue: c.CookieValue}
}

// Serve is a plugin's main: it answers the host that started the process with what
// register adds, and returns when the host lets go.
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

// deadline ends a unary call in time unless the caller's context ends earlier.
func (c Contract) deadline(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, c.Deadline(method))
	defer cancel()
	return next(ctx, method, req, resp, cc, opts...)
}

// glue tells go-plugin how to offer the service and how to reach it.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server) // nil on the host's side
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

// link is a connection to a plugin; exited closes when its process has ended.
type link struct {
	conn   *grpc.ClientConn
	exited <-chan struct{}
}
