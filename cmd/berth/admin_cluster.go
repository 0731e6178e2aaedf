package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := a.verb("cluster", "Show which manager leads, where evictions are stopped, and the versions of all roles; exits with 1 while none leads", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			found, err := c.Cluster(ctx)
			if err != nil {
				return err
			}
			if err := a.print().Print(found, func() error {
				a.describeCluster(found)
				fmt.Fprintln(a.out)
				return a.print().Write(a.versions(found))
			}); err != nil {
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

// versions lists what runs where.
func (a *app) versions(found *client.Cluster) *output.Table {
	t := output.NewTable("ROLE", "NAME", "VERSION", "STATE")
	seen := func(at time.Time) string { return "seen " + output.Age(a.now(), at) + " ago" }
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

func (a *app) describeCluster(found *client.Cluster) {
	s := a.sheet()
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
