package session

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/stats"
)

func statsCommand(a *cli.App) *cobra.Command {
	return stats.Command(a, "session", a.CompleteSession, func(ctx context.Context, c *client.Client, ref string) (string, map[string]string, error) {
		s, err := cli.FindSession(ctx, c, ref)
		if err != nil {
			return "", nil, err
		}
		d, err := c.Session(ctx, s.ID)
		if err != nil {
			return "", nil, err
		}
		parts := map[string]string{}
		for _, k := range d.Kernels {
			parts[k.ID] = k.Hostname
		}
		return s.ID, parts, nil
	})
}
