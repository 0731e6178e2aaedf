package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

func (a *app) occupancyCommand() *cobra.Command {
	var repair bool
	cmd := a.verb("occupancy", "Compare the database with the containers on agents; exits with 1 if they differ", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			ask := c.Occupancy
			if repair {
				ask = c.AuditOccupancy
			}
			found, err := ask(ctx)
			if err != nil {
				return err
			}
			if err := a.print().Print(found, func() error { return a.describeOccupancy(found) }); err != nil {
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

func (a *app) describeOccupancy(found *client.OccupancyAudit) error {
	s := a.sheet()
	s.fact("Agents", fmt.Sprint(found.Agents))
	for _, name := range found.Silent {
		s.fact("Silent", name)
	}
	s.fact("Kernels", fmt.Sprint(found.Kernels))
	s.fact("Holdings", fmt.Sprint(found.Allocations))
	if len(found.Drift) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
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
	return a.print().Write(t)
}
