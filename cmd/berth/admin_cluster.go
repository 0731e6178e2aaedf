package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := a.verb("cluster", "Show which manager leads, and where evictions are stopped; exits with 1 while none leads", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			found, err := c.Cluster(ctx)
			if err != nil {
				return err
			}
			if err := a.print().Print(found, func() error { a.describeCluster(found); return nil }); err != nil {
				return err
			}
			if !found.Led {
				return fmt.Errorf("no manager leads the cluster")
			}
			return nil
		})
	cmd.AddCommand(a.recoveryCommand())
	return cmd
}

func (a *app) describeCluster(found *client.Cluster) {
	s := sheet{a.out}
	if found.Leader == nil {
		s.fact("Leader", "none")
	} else {
		s.fact("Leader", found.Leader.Address)
		s.fact("ID", found.Leader.ID)
		s.fact("Since", a.moment(&found.Leader.Since))
		s.fact("Epoch", strconv.FormatInt(found.Leader.Epoch, 10))
	}
	if r := found.Recovery; r != nil {
		s.fact("Recovery", fmt.Sprintf("on since %s: %s", a.moment(&r.Since), output.Clean(r.Reason)))
	}
	for _, e := range found.EvictionsStopped {
		s.fact("Evictions", fmt.Sprintf("stopped in resource group %s: %d of %d agents are out of reach", e.ResourceGroup, e.Unreachable, e.Agents))
	}
}
