package main

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) sessionLogs() *cobra.Command {
	var follow, raw bool
	var tail int
	cmd := &cobra.Command{
		Use:   "logs SESSION",
		Short: "Print the output of a session's main process",
		Args:  count(1, 1),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the process has ended")
	rawFlag(cmd, &raw)
	cmd.Flags().IntVarP(&tail, "tail", "n", 0, "only the last so many lines")
	return a.onSession(cmd, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		if tail < 0 {
			return usagef("--tail %d: not a number of lines", tail)
		}
		if !follow && tail == 0 {
			return c.Log(ctx, s.ID, calm(a.out, raw))
		}
		return a.logs(ctx, c, s, logFlags{follow, raw, tail})
	})
}

// logFlags say what is printed of a log, and how.
type logFlags struct {
	follow, raw bool
	tail        int
}

// rawFlag turns calm off.
func rawFlag(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "print control sequences on a terminal too, not only colours")
}

// calm keeps what a container printed from doing anything to a terminal but colour
// the text. What goes to a file or a pipe stays as it is.
func calm(w io.Writer, raw bool) io.Writer {
	if _, ok := terminal(w); !ok || raw {
		return w
	}
	return output.NewCalm(w)
}

func (a *app) logs(ctx context.Context, c *client.Client, s *client.Session, f logFlags) error {
	follow, out := f.follow, calm(a.out, f.raw)
	status := a.statusLine(false)
	defer status.Clear()
	told := func(err error) { status.Pause(oneLine(err)) }
	// A following reader waits for the session's start, another one does not.
	var kernel string
	var over bool
	err := c.WatchSession(ctx, s.ID, told, func(state client.SessionState) bool {
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
	log := client.LogStream{Kernel: kernel, Follow: follow, Tail: f.tail, Told: func(err error) {
		if !errdefs.IsUnavailable(err) {
			status.Clear()
			a.note("berth: %s", oneLine(err))
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
		err := client.Retry(ctx, log.Told, func() (err error) {
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

func (a *app) sessionEvents() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "events [SESSION]",
		Short: "Print a session's history, or watch changes as they happen",
		Long: `Print the history of a session. With -w, print one line (with -o json, one JSON
object) for each new change: of one session until it has ended, or of all sessions
that you can see.`,
		Args:              count(0, 1),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !watch {
				return usagef("name a session, or use -w to watch all of them")
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			id := ""
			if len(args) > 0 {
				s, err := findSession(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				id = s.ID
			}
			if watch {
				return a.watchSessions(cmd.Context(), c, id)
			}
			d, err := c.Session(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.table(d.History, func() *output.Table { return a.historyTable(d.History) })
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print changes as they happen")
	return cmd
}

func (a *app) watchSessions(ctx context.Context, c *client.Client, id string) error {
	p := a.print()
	last := map[string]client.SessionState{}
	var failed error
	err := c.WatchSession(ctx, id, nil, func(s client.SessionState) bool {
		if reflect.DeepEqual(last[s.ID], s) {
			return true
		}
		last[s.ID] = s
		failed = p.Line(s, func() error {
			text := fmt.Sprintf("%s  %-12s %s", a.now().Format("15:04:05"), s.Status, s.Name)
			if s.Pending != nil && s.Pending.Summary != "" {
				text += ": " + s.Pending.Summary
			} else if s.StatusMessage != "" {
				text += ": " + s.StatusMessage
			}
			_, err := fmt.Fprintln(a.out, output.Clean(text))
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
