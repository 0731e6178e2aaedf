// Command berthd is the server: every role of the platform in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/internal/requestid"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the process at once
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
	cmd.AddCommand(upCommand(), managerCommand(), agentCommand(), storageCommand(), containerdCommand(), rotateKeysCommand(), ticketKeyCommand(), fixtureCommand())
	return cmd
}

// logger writes to standard error; level is one of debug, info, warn, error.
func logger(level string, asJSON bool) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	opt := &slog.HandlerOptions{Level: l}
	var h slog.Handler = slog.NewTextHandler(os.Stderr, opt)
	if asJSON {
		h = slog.NewJSONHandler(os.Stderr, opt)
	}
	return slog.New(requestid.LogHandler{Handler: h}), nil
}

// logFlags adds the flags that every role has.
func logFlags(cmd *cobra.Command, level *string, asJSON *bool, defaultLevel string) {
	cmd.Flags().StringVar(level, "log-level", defaultLevel, "debug, info, warn or error")
	cmd.Flags().BoolVar(asJSON, "log-json", false, "log JSON lines")
}
