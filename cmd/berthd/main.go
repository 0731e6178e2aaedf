// Command berthd is the server: every role of Berth in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/agent/lazy"
	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/internal/confine"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // from here on, Ctrl-C ends the process at once
	}()
	if err := root().ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "berthd:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "berthd",
		Short:         "Share machines and accelerators among many people",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(upCommand(), managerCommand(), gatewayCommand(), agentCommand(), storageCommand(), containerdCommand(), lazyCommand(), rotateKeysCommand(), ticketKeyCommand(), fixtureCommand())
	return cmd
}

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

// lazyCommand serves the files of one image that is not complete yet. The agent starts it.
func lazyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "lazy", Short: "Serve the files of an image before it is complete", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return lazy.Main(os.Stdin, os.Stdout) },
	}
}

// closeData creates the directory of all state, or closes the permissions of one that an
// earlier version left open. The stores run as another user, who can only traverse it.
func closeData(dir string) error {
	if err := confine.Directory(dir, 0o711); err != nil {
		return err
	}
	for _, name := range []string{"volumes", "volumes/local", "agent", "containerd", "storage", "secrets", "registry"} {
		if err := confine.Directory(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}
