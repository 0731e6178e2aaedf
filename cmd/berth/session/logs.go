package session

import (
	"context"
	"fmt"
	"reflect"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func logsCommand(a *cli.App) *cobra.Command {
	var follow, raw bool
	var tail int
	var kernel string
	cmd := &cobra.Command{
		Use:     "logs SESSION",
		Short:   "Print the output of a session's main process, or of another container",
		Example: "  berth session logs train --kernel sub1 -f",
		Args:    cli.Args(1, 1),
	}
	cmd.Flags().StringVar(&kernel, "kernel", "", "`container` of the session: main, sub1 and so on (default main)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new output until the process has ended")
	cli.RawFlag(cmd, &raw)
	cmd.Flags().IntVarP(&tail, "tail", "n", 0, "only the last so many lines")
	return onSession(a, cmd, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		return Logs(ctx, a, c, s, LogFlags{follow, raw, tail, kernel})
	})
}

// LogFlags select the part of a log and its format.
type LogFlags struct {
	Follow, Raw bool
	Tail        int
	Kernel      string // name or ID of a container; "": the main one
}

// Logs prints the log of a container of a session.
func Logs(ctx context.Context, a *cli.App, c *client.Client, s *client.Session, f LogFlags) error {
	if f.Tail < 0 {
		return cli.Usagef("--tail %d: not a number of lines", f.Tail)
	}
	if f.Follow || f.Tail > 0 {
		return streamLog(ctx, a, c, s, f)
	}
	at := client.ContainerRef{Session: s.ID}
	if f.Kernel != "" {
		k, err := cli.FindContainer(ctx, c, s.ID, f.Kernel)
		if err != nil {
			return err
		}
		at.Kernel = k.ID
	}
	return c.ContainerLog(ctx, at, cli.Calm(a.Out, f.Raw))
}

func streamLog(ctx context.Context, a *cli.App, c *client.Client, s *client.Session, f LogFlags) error {
	follow, out := f.Follow, cli.Calm(a.Out, f.Raw)
	status := a.StatusLine(false)
	defer status.Clear()
	warn := func(err error) { status.Pause(cli.OneLine(err)) }
	// Only a reader that follows waits for the session's start.
	var kernel string
	var over bool
	err := c.WatchSession(ctx, s.ID, warn, func(state client.SessionState) bool {
		kernel, over = state.MainKernel(), state.Ended()
		ready := over || state.Started() && kernel != "" || !follow
		if !ready {
			status.Session(s.Name, state)
		}
		return !ready
	})
	status.Clear()
	if err != nil || kernel == "" {
		return err
	}
	if f.Kernel != "" {
		k, err := cli.FindContainer(ctx, c, s.ID, f.Kernel)
		if err != nil {
			return err
		}
		kernel = k.ID
	}
	log := client.LogStream{Kernel: kernel, Follow: follow, Tail: f.Tail, Warn: func(err error) {
		if !errdefs.IsUnavailable(err) {
			status.Clear()
			a.Note("berth: %s", cli.OneLine(err))
		}
	}}
	var pauses client.Backoff
	for {
		before := log.Offset()
		if err := log.CopyTo(ctx, c, out); err != nil || over || !follow {
			return err
		}
		if log.Offset() > before {
			pauses.Reset()
		}
		// The stream also ends when its server stops, so ask whether the process has ended.
		var now *client.SessionDetail
		err := client.Retry(ctx, log.Warn, func() (err error) {
			now, err = c.Session(ctx, s.ID)
			return err
		})
		if err != nil {
			return err
		}
		// Once the process has ended, the rest of the log is read without a pause.
		if over = now.Ended() || kernelEnded(now, kernel); !over {
			if err := pauses.Wait(ctx); err != nil {
				return err
			}
		}
	}
}

func kernelEnded(s *client.SessionDetail, id string) bool {
	for _, k := range s.Kernels {
		if k.ID == id {
			return k.TerminatedAt != nil || k.ExitCode != nil
		}
	}
	return true
}

func eventsCommand(a *cli.App) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "events [SESSION]",
		Short: "Print a session's history, or watch changes as they happen",
		Long: `Print the history of a session. With -w, print one line (with -o json, one JSON
object) for each new change: of one session until it has ended, or of all sessions
that you can see.`,
		Args:              cli.Args(0, 1),
		ValidArgsFunction: a.CompleteSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !watch {
				return cli.Usagef("name a session, or use -w to watch all of them")
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			id := ""
			if len(args) > 0 {
				s, err := cli.FindSession(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				id = s.ID
			}
			if watch {
				return watchSessions(cmd.Context(), a, c, id)
			}
			d, err := c.Session(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.Table(d.History, func() *output.Table { return historyTable(a, d.History) })
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print changes as they happen")
	return cmd
}

func watchSessions(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	p := a.Printer()
	last := map[string]client.SessionState{}
	var failed error
	err := c.WatchSession(ctx, id, nil, func(s client.SessionState) bool {
		if reflect.DeepEqual(last[s.ID], s) {
			return true
		}
		last[s.ID] = s
		failed = p.Line(s, func() error {
			text := fmt.Sprintf("%s  %-12s %s", a.Now().Format("15:04:05"), s.Status, s.Name)
			if s.Pending != nil && s.Pending.Summary != "" {
				text += ": " + s.Pending.Summary
			} else if s.StatusMessage != "" {
				text += ": " + s.StatusMessage
			}
			_, err := fmt.Fprintln(a.Out, output.Clean(text))
			return err
		})
		if s.Ended() {
			delete(last, s.ID)
		}
		return failed == nil && !(id != "" && s.Ended())
	})
	if failed != nil {
		return failed
	}
	return err
}
