// Package accelerator is the common code of accelerator plugins and their host: Serve for a
// plugin's main, Launch for the host, and the validation of a plugin's responses. A vendor imports
// only this package and the contract in acceleratorpb.
package accelerator

import (
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/process"
)

// Contract returns the parameters that hosts and plugins in every language share.
func Contract() process.Contract {
	return process.Contract{
		Service: "accelerator", CookieKey: "BERTH_ACCELERATOR_PLUGIN", CookieValue: "8f1c1b0e-accelerator",
		Versions: []int{1}, Deadline: deadline,
	}
}

// Serve is the main function of a plugin. It serves the host that started the process, and returns
// when the host disconnects.
func Serve(impl acceleratorpb.AcceleratorServer) {
	Contract().Serve(func(s *grpc.Server) { acceleratorpb.RegisterAcceleratorServer(s, impl) })
}

// Logger returns a logger to standard error in the format that the host parses. A plugin must not
// log anywhere else.
func Logger() hclog.Logger { return process.Logger() }
