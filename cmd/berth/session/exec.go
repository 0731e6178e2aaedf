package session

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

func execCommand(a *cli.App) *cobra.Command {
	var input, tty, raw bool
	cmd := &cobra.Command{
		Use:   "exec [-it] SESSION [-- COMMAND [ARG...]]",
		Short: "Run a command in a running session",
		Long: `Run a command, or the image's shell, in a running session and exit with its exit
code. -i forwards standard input, -t allocates a terminal. Without -t, only text
and colors reach your terminal; --raw forwards everything. If berth itself fails,
the exit code is 125.`,
		Example:     "  berth session exec -it my-session\n  berth session exec my-session -- nvidia-smi",
		Annotations: map[string]string{cli.PassesCode: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := cli.Split(cmd, args)
			if len(before) != 1 {
				return cli.Usagef("usage: %s", cmd.UseLine())
			}
			if _, ok := cli.Terminal(a.In); tty && input && !ok {
				return cli.Usagef("-t: standard input is not a terminal")
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			s, err := cli.FindSession(cmd.Context(), c, before[0])
			if err != nil {
				return err
			}
			code, err := exec(cmd.Context(), a, c, client.TerminalOptions{Session: s.ID, Command: command, TTY: tty}, input, raw)
			if err == nil && code != 0 {
				err = cli.StatusError(code & 0xff)
			}
			return err
		},
		ValidArgsFunction: a.CompleteSession,
	}
	cmd.Flags().BoolVarP(&input, "interactive", "i", false, "pass standard input on")
	cmd.Flags().BoolVarP(&tty, "tty", "t", false, "give the command a terminal")
	cli.RawFlag(cmd, &raw)
	return cmd
}

func exec(ctx context.Context, a *cli.App, c *client.Client, o client.TerminalOptions, input, raw bool) (int, error) {
	outFD, outTTY := cli.Terminal(a.Out)
	if o.TTY && outTTY {
		o.Cols, o.Rows, _ = term.GetSize(outFD)
	}
	t, err := c.OpenTerminal(ctx, o)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	// From here on, interrupts go to the command.
	ctx, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGWINCH)
	defer signal.Stop(signals)
	a.OwnSignals()
	if fd, ok := cli.Terminal(a.In); ok && o.TTY && input {
		before, err := term.MakeRaw(fd)
		if err != nil {
			return 0, err
		}
		defer func() { _ = term.Restore(fd, before) }()
	}
	go relaySignals(ctx, t, signals, leave, func() (int, int, bool) {
		cols, rows, err := term.GetSize(outFD)
		return cols, rows, o.TTY && outTTY && err == nil
	})
	if input {
		// The read cannot be interrupted; it ends with the process.
		go func() {
			_, _ = io.Copy(t, a.In)
			_ = t.CloseInput(ctx)
		}()
	} else if err := t.CloseInput(ctx); err != nil {
		return 0, err
	}
	code, err := t.Output(ctx, cli.Calm(a.Out, raw || o.TTY), cli.Calm(a.Err, raw || o.TTY))
	if context.Cause(ctx) == errLeft {
		return cli.ExitInterrupted, nil
	}
	return code, err
}

// relaySignals passes interrupts on to the command; the third one detaches from it.
func relaySignals(ctx context.Context, t *client.Terminal, signals <-chan os.Signal, leave context.CancelCauseFunc, size func() (cols, rows int, ok bool)) {
	interrupts := 0
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGWINCH {
				if cols, rows, ok := size(); ok {
					_ = t.Resize(ctx, cols, rows)
				}
				continue
			}
			if interrupts++; interrupts > 2 {
				leave(errLeft)
			}
			_ = t.Signal(ctx, int(s.(syscall.Signal)))
		case <-ctx.Done():
			return
		}
	}
}
