// Package accelerator is what an accelerator plugin and its host share: Serve
// for the plugin's main, Launch for the host, and the rules a plugin's answers
// have to keep. It is the one package a vendor imports, with the contract in
// acceleratorpb.
package accelerator

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/process"
)

// The handshake: every plugin in every language knows these.
const (
	CookieKey   = "BERTH_ACCELERATOR_PLUGIN"
	CookieValue = "8f1c1b0e-accelerator"
	// Version is the newest version of the contract this package speaks.
	Version = 1

	service = "accelerator"
)

var handshake = plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}

// versions maps every contract version to its service; host and plugin agree
// on the highest that both have.
func versions(impl acceleratorpb.AcceleratorServer) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{1: {service: &glue{impl: impl}}}
}

// Serve is a plugin's main: it answers the host that started the process and
// returns when the host lets go.
func Serve(impl acceleratorpb.AcceleratorServer) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: versions(impl),
		GRPCServer:       plugin.DefaultGRPCServer,
		Logger:           Logger(),
	})
}

// Logger writes lines that the host understands to standard error, the only
// place a plugin may log to.
func Logger() hclog.Logger { return process.Logger() }

// glue tells go-plugin how to offer the service and how to reach it.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	impl acceleratorpb.AcceleratorServer
}

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if g.impl == nil {
		return errors.New("no implementation to serve")
	}
	acceleratorpb.RegisterAcceleratorServer(s, g.impl)
	return nil
}

func (g *glue) GRPCClient(ctx context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &link{AcceleratorClient: acceleratorpb.NewAcceleratorClient(conn), exited: ctx.Done()}, nil
}

// link is a connection to a plugin; exited closes when its process has ended.
type link struct {
	acceleratorpb.AcceleratorClient
	exited <-chan struct{}
}
