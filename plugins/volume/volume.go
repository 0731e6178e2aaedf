// Package volume is the common code of volume plugins and their host: Serve for a plugin's main,
// Launch for the host, and Usage, a walk for products that cannot report the size of a tree. A
// vendor imports only this package and the contract in volumepb.
package volume

import (
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/process"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// Contract returns the parameters that hosts and plugins in every language share.
func Contract() process.Contract {
	return process.Contract{
		Service: "volume", CookieKey: "BERTH_VOLUME_PLUGIN", CookieValue: "5d0e7a42-volume",
		Versions: []int{1}, Deadline: deadline,
	}
}

// Serve is the main function of a plugin. It serves the host that started the process, and returns
// when the host disconnects.
func Serve(impl volumepb.VolumeServer) {
	Contract().Serve(func(s *grpc.Server) { volumepb.RegisterVolumeServer(s, impl) })
}

// Logger returns a logger to standard error in the format that the host parses. A plugin must not
// log anywhere else.
func Logger() hclog.Logger { return process.Logger() }
