// Package volume is what a volume plugin and its host share: Serve for the
// plugin's main, Launch for the host, and Usage, the walk that stands in for a
// product that cannot tell the size of a tree. It is the one package a vendor
// imports, with the contract in volumepb.
package volume

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/process"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// The handshake: every plugin in every language knows these.
const (
	CookieKey   = "BERTH_VOLUME_PLUGIN"
	CookieValue = "5d0e7a42-volume"
	// Version is the newest version of the contract this package speaks.
	Version = 1

	service = "volume"
)

var handshake = plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}

// versions maps every contract version to its service; host and plugin agree
// on the highest that both have.
func versions(impl volumepb.VolumeServer) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{1: {service: &glue{impl: impl}}}
}

// Serve is a plugin's main: it answers the host that started the process and
// returns when the host lets go.
func Serve(impl volumepb.VolumeServer) {
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
	impl volumepb.VolumeServer
}

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if g.impl == nil {
		return errors.New("no implementation to serve")
	}
	volumepb.RegisterVolumeServer(s, g.impl)
	return nil
}

func (g *glue) GRPCClient(ctx context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &link{VolumeClient: volumepb.NewVolumeClient(conn), exited: ctx.Done()}, nil
}

// link is a connection to a plugin; exited closes when its process has ended.
type link struct {
	volumepb.VolumeClient
	exited <-chan struct{}
}
