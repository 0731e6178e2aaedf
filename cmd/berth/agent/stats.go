package agent

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/stats"
)

func statsCommand(a *cli.App) *cobra.Command {
	return stats.Command(a, "agent", nil, func(ctx context.Context, c *client.Client, ref string) (string, map[string]string, error) {
		g, err := cli.FindAgent(ctx, c, ref)
		if err != nil {
			return "", nil, err
		}
		return g.ID, map[string]string{g.ID: g.Name}, nil
	})
}
