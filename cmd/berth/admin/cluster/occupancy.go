package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// OccupancyCommand returns the command "berth admin occupancy".
func OccupancyCommand(a *cli.App) *cobra.Command {
	var repair bool
	cmd := a.Verb("occupancy", "Compare the database with the containers on agents; exits with 1 if they differ", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			ask := c.Occupancy
			if repair {
				ask = c.AuditOccupancy
			}
			found, err := ask(ctx)
			if err != nil {
				return err
			}
			if err := a.Printer().Print(found, func() error { return describeOccupancy(a, found) }); err != nil {
				return err
			}
			if len(found.Drift) > 0 {
				return errors.New("the agents and the database differ")
			}
			return nil
		})
	cmd.Flags().BoolVar(&repair, "repair", false, "end containers that should not run, and free devices that no session uses")
	return cmd
}

func describeOccupancy(a *cli.App, found *client.OccupancyAudit) error {
	s := a.Sheet()
	s.Fact("Agents", fmt.Sprint(found.Agents))
	for _, name := range found.Silent {
		s.Fact("Silent", name)
	}
	s.Fact("Kernels", fmt.Sprint(found.Kernels))
	s.Fact("Holdings", fmt.Sprint(found.Allocations))
	if len(found.Drift) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	t := output.NewTable("KIND", "AGENT", "DEVICE", "KERNEL", "OWNER", "DETAIL", "MENDED").Spare("DETAIL")
	for _, d := range found.Drift {
		kernel, repaired := "", "no"
		if d.Kernel != nil {
			kernel = *d.Kernel
		}
		if d.Repaired {
			repaired = "yes"
		}
		t.Row(d.Kind, d.Agent, d.Device, kernel, d.Owner, d.Detail, repaired)
	}
	return a.Printer().Write(t)
}
