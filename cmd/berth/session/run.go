package session

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/resource"
)

// RunCommand returns the command "berth run".
func RunCommand(a *cli.App) *cobra.Command {
	var f createFlags
	var keep, detach, quiet, raw, noHints bool
	var array string
	cmd := &cobra.Command{
		Use:   "run [IMAGE] [flags] -- COMMAND [ARG...]",
		Short: "Run a command in a batch session and stream its output",
		Long: `Run a command in a batch session, stream its output, and exit with its exit code.

While the session is pending, a line on standard error says why. Ctrl-C ends the
session and waits until it has ended; a second Ctrl-C exits at once. If berth
itself fails, the exit code is 125.

With --array, one session is created for each index, with the index in
BERTH_ARRAY_INDEX. berth prints the name of the array and does not wait.`,
		Example: `  berth run python:3.11 -- python3 -c 'print(6*7)'
  berth run python:3.11 --cpu 2 --mem 4g --gpu 0.5 -v data:/home/work/data:ro -- python3 train.py
  berth run python:3.11 --array 1-100%8 -- python3 job.py`,
		Annotations: map[string]string{cli.PassesCode: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := cli.Split(cmd, args)
			image, err := f.image(cmd, before)
			if err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			in, err := f.input(cmd.Context(), a, cmd, c, "BATCH", image, command)
			if err != nil {
				return err
			}
			if array != "" {
				return createArray(cmd.Context(), a, c, in, array)
			}
			s, err := c.CreateSession(cmd.Context(), in)
			if err != nil {
				return err
			}
			if !noHints && !quiet && !a.Printer().Machine() {
				hint(cmd.Context(), a, c, s)
			}
			if detach {
				return created(a, s)
			}
			r := &watcher{app: a, client: c, id: s.ID, name: s.Name, keep: keep, raw: raw, status: a.StatusLine(quiet)}
			return follow(cmd.Context(), a, r)
		},
	}
	f.register(cmd)
	f.fromTemplate(cmd)
	flags := cmd.Flags()
	flags.StringVar(&array, "array", "", "create a session for each of these `indexes`: 1-100, 1-10:2 or 1,3,7; with %8 at the end, at most 8 run at once")
	cli.SetsField(cmd, "array", "indexes")
	flags.BoolVar(&keep, "keep", false, "leave the session running on Ctrl-C instead of ending it")
	flags.BoolVarP(&detach, "detach", "d", false, "print the session and do not wait for it")
	flags.BoolVarP(&quiet, "quiet", "q", false, "say nothing while the session waits")
	flags.BoolVar(&noHints, "no-hints", false, "do not say which size an earlier session with the image would have needed")
	cli.RawFlag(cmd, &raw)
	cli.Exclusive(cmd, "keep", "detach")
	cli.Exclusive(cmd, "keep", "array")
	return cmd
}

// hint says which size an earlier session with the image would have needed, if this one requests more. A hint that cannot be read is left
// out.
func hint(ctx context.Context, a *cli.App, c *client.Client, s *client.Session) {
	advice, err := c.SizeAdvice(ctx, s.Image.ID, s.Name)
	if err != nil || advice == nil || !larger(s.Slots, advice.Suggested) {
		return
	}
	a.Note("Hint: session %s with this image would have needed %s; this one has %s.", output.Clean(advice.Session.Name), output.Slots(advice.Suggested), output.Slots(s.Slots))
}

// larger reports whether a request has at least a quarter more of a slot than a suggestion.
func larger(asked, suggested client.Slots) bool {
	for slot, text := range asked {
		have, err := resource.Parse(slot, text)
		need, known := resource.Parse(slot, suggested[slot])
		if err == nil && known == nil && need > 0 && have*4 >= need*5 {
			return true
		}
	}
	return false
}

// created prints a new session: its name for people, all of it for programs.
func created(a *cli.App, s *client.Session) error {
	p := a.Printer()
	return p.Print(s, func() error {
		_, err := fmt.Fprintln(a.Out, s.Name)
		a.NotePage("/sessions/" + s.ID)
		return err
	})
}

// errLeft means that the user does not want to wait any longer.
var errLeft = fmt.Errorf("left: %w", context.Canceled)

// follow runs a watcher and handles interrupts meanwhile.
func follow(ctx context.Context, a *cli.App, r *watcher) error {
	ctx, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	a.OwnSignals()
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-signals:
				asking.Go(func() { r.interrupt(ctx, leave) })
			case <-ctx.Done():
				return
			}
		}
	})
	code, err := r.run(ctx)
	leave(nil)
	asking.Wait()
	r.status.Clear()
	switch {
	case context.Cause(ctx) == errLeft:
		return cli.StatusError(cli.ExitInterrupted)
	case err != nil:
		return err
	case code != 0:
		return cli.StatusError(code & 0xff)
	}
	return nil
}

// outcome turns a session that has ended into an exit code.
func (r *watcher) outcome(s client.SessionState) (int, error) {
	reason := ""
	if s.TerminationReason != nil {
		reason = s.TerminationReason.String()
	}
	if s.ExitCode != nil {
		if reason != "" && reason != "completed" && reason != "failed" {
			r.note("session %s ended: %s", r.name, because(reason, s.StatusMessage))
		}
		return *s.ExitCode, nil
	}
	if r.interrupted.Load() {
		return cli.ExitInterrupted, nil
	}
	if reason == "" {
		reason = s.Status.String()
	}
	return 0, fmt.Errorf("session %s ended without an exit code: %s: %w", r.name, because(reason, s.StatusMessage), errdefs.ErrAborted)
}

func because(reason, message string) string {
	if message = output.Clean(message); message != "" {
		return reason + ", " + message
	}
	return reason
}
