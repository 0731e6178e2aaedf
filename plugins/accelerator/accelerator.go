// Package accelerator is what an accelerator plugin and its host share: Serve
// for the plugin's main, Launch for the host, and the rules a plugin's answers
// have to keep. It is the one package a vendor imports, with the contract in
// acceleratorpb.
package accelerator

import (
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/process"
)

// Contract is what every host and plugin in every language agree on.
func Contract() process.Contract {
	return process.Contract{
		Service: "accelerator", CookieKey: "BERTH_ACCELERATOR_PLUGIN", CookieValue: "8f1c1b0e-accelerator",
		Versions: []int{1}, Deadline: deadline,
	}
}

// Serve is a plugin's main: it answers the host that started the process and
// returns when the host lets go.
func Serve(impl acceleratorpb.AcceleratorServer) {
	Contract().Serve(func(s *grpc.Server) { acceleratorpb.RegisterAcceleratorServer(s, impl) })
}

// Logger writes lines that the host understands to standard error, the only
// place a plugin may log to.
func Logger() hclog.Logger { return process.Logger() }
