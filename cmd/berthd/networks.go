package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/internal/netlist"
)

// networkLists are the flags for networks that an agent's containers can reach.
type networkLists struct{ allow, deny []string }

func (l *networkLists) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&l.allow, "allow-network", nil, "private network that containers reach, as CIDR or address, with :PORT for one port of TCP and UDP; repeatable (default none: 10/8, 172.16/12, 192.168/16 and 100.64/10 are denied)")
	f.StringSliceVar(&l.deny, "deny-network", nil, "further network that containers do not reach, as CIDR or address; repeatable. Of the networks around an address the narrowest decides")
}

func (l *networkLists) set(cfg *agent.Config) (err error) {
	if cfg.AllowNetworks, err = netlist.Parse(l.allow); err != nil {
		return fmt.Errorf("--allow-network: %w", err)
	}
	if cfg.DenyNetworks, err = netlist.ParseNetworks(l.deny); err != nil {
		return fmt.Errorf("--deny-network: %w", err)
	}
	return nil
}
