package main

import (
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
)

// containerdCommand runs the agent's own containerd, which the agent starts as a child
// process.
func containerdCommand() *cobra.Command {
	var cfg daemon.Config
	cmd := &cobra.Command{
		Use: "containerd", Short: "Run the agent's containerd", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return daemon.Run(cmd.Context(), cfg) },
	}
	pathFlag(cmd, &cfg.Dir, "dir", "", "directory of images, snapshots and state")
	return cmd
}
