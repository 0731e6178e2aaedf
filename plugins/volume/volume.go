// Package volume is what a volume plugin and its host share: Serve for the
// plugin's main, Launch for the host, and Usage, the walk that stands in for a
// product that cannot tell the size of a tree. It is the one package a vendor
// imports, with the contract in volumepb.
package volume

import (
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/process"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// Contract is what every host and plugin in every language agree on.
func Contract() process.Contract {
	return process.Contract{
		Service: "volume", CookieKey: "BERTH_VOLUME_PLUGIN", CookieValue: "5d0e7a42-volume",
		Versions: []int{1}, Deadline: deadline,
	}
}

// Serve is a plugin's main: it answers the host that started the process and
// returns when the host lets go.
func Serve(impl volumepb.VolumeServer) {
	Contract().Serve(func(s *grpc.Server) { volumepb.RegisterVolumeServer(s, impl) })
}

// Logger writes lines that the host understands to standard error, the only
// place a plugin may log to.
func Logger() hclog.Logger { return process.Logger() }
