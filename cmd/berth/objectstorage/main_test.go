package objectstorage_test

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
	"github.com/berthhq/berth/cmd/berth/folder"
	"github.com/berthhq/berth/cmd/berth/objectstorage"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	return clitest.New(t, func(a *cli.App) []*cobra.Command {
		return []*cobra.Command{objectstorage.Command(a), folder.Command(a)}
	})
}
