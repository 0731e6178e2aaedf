package app

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// newServer returns a server with one running session of two containers.
func newServer(t *testing.T) *clitest.Server {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	f.Data("Sessions", `{"sessions":`+clitest.Edges(`{"id":"s1","name":"train","status":"RUNNING"}`)+`}`)
	f.Data("SessionContainers", `{"sessions":`+clitest.Edges(`{"id":"s1","name":"train","status":"RUNNING",
		"kernels":[{"id":"k0","hostname":"main","status":"RUNNING"},{"id":"k1","hostname":"sub1","status":"RUNNING"}]}`)+`}`)
	return f
}
