package usage

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	return clitest.New(t, func(a *cli.App) []*cobra.Command {
		return []*cobra.Command{Command(a), BudgetCommand(a)}
	})
}
