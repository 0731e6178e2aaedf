package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/stats"
)

func statsCommand(a *cli.App) *cobra.Command {
	return stats.Command(a, "deploy", a.CompleteDeployment, func(ctx context.Context, c *client.Client, ref string) (string, map[string]string, error) {
		d, err := cli.FindDeployment(ctx, c, ref)
		if err != nil {
			return "", nil, err
		}
		return d.ID, map[string]string{d.ID: d.Name}, nil
	})
}
