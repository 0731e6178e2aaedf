// Package cluster has the commands about the state of the whole cluster.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth admin cluster".
func Command(a *cli.App) *cobra.Command {
	cmd := a.Verb("cluster", "Show which manager leads, where evictions are stopped, and the versions of all roles; exits with 1 while none leads", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			found, err := c.Cluster(ctx)
			if err != nil {
				return err
			}
			if err := a.Printer().Print(found, func() error {
				describeCluster(a, found)
				fmt.Fprintln(a.Out)
				return a.Printer().Write(versions(a, found))
			}); err != nil {
				return err
			}
			if !found.Led {
				return fmt.Errorf("no manager leads the cluster")
			}
			return nil
		})
	cmd.AddCommand(recoveryCommand(a))
	return cmd
}

// versions lists the versions of the programs on each machine.
func versions(a *cli.App, found *client.Cluster) *output.Table {
	t := output.NewTable("ROLE", "NAME", "VERSION", "STATE")
	seen := func(at time.Time) string { return "seen " + output.Age(a.Now(), at) + " ago" }
	for _, m := range found.Managers {
		state := "alive"
		if m.Leads {
			state = "leads"
		}
		t.Row("manager", m.Address, cmp.Or(m.Version, "unknown"), state)
	}
	for _, p := range found.StorageProxies {
		t.Row("storage", p.Name, p.Version, seen(p.LastSeenAt))
	}
	for _, g := range found.Agents {
		t.Row("agent", g.Name, g.Version, g.Status)
		for _, p := range g.Plugins {
			t.Row("plugin", g.Name+"/"+p.Name, cmp.Or(p.Version, "unknown"), p.State)
		}
	}
	return t
}

func describeCluster(a *cli.App, found *client.Cluster) {
	s := a.Sheet()
	if found.Leader == nil {
		s.Fact("Leader", "none")
	} else {
		s.Fact("Leader", found.Leader.Address)
		s.Fact("ID", found.Leader.ID)
		s.Fact("Since", a.Moment(&found.Leader.Since))
		s.Fact("Epoch", strconv.FormatInt(found.Leader.Epoch, 10))
	}
	if r := found.Recovery; r != nil {
		s.Fact("Recovery", fmt.Sprintf("on since %s: %s", a.Moment(&r.Since), output.Clean(r.Reason)))
	}
	for _, e := range found.EvictionsStopped {
		s.Fact("Evictions", fmt.Sprintf("stopped in resource group %s: %d of %d agents are out of reach", e.ResourceGroup, e.Unreachable, e.Agents))
	}
}
