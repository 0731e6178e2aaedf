// Package cli has the parts that all commands of berth share: the app, exit codes, flags, prompts,
// progress, and look-ups of objects by name.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berthhq/berth/cmd/berth/output"
)

// App has what every command needs: streams, environment and flags.
type App struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Env func(string) string
	Now func() time.Time

	// Version is the version of this program.
	Version string

	// OwnSignals stops the default handling of interrupts, so that the calling command handles
	// them.
	OwnSignals func()
	// Interactive reports whether a person reads standard error.
	Interactive func() bool

	ContextName string
	ActAs       string
	format      string
}

// New returns an app on these streams and this environment.
func New(in io.Reader, out, err io.Writer, env func(string) string) *App {
	interactive := func() bool { _, is := Terminal(err); return is }
	return &App{In: in, Out: out, Err: err, Env: env, Now: time.Now, Version: "dev", OwnSignals: func() {}, Interactive: interactive}
}

// Main runs one command line with these commands and returns the exit code.
func (a *App) Main(ctx context.Context, args []string, commands ...*cobra.Command) int {
	root := a.Root(commands...)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.finish(cmd, err)
}

// Root returns the root command.
func (a *App) Root(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Work with a Berth cluster",
		Version:       a.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          needsVerb,
		RunE:          showHelp,
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.ContextName, "context", "", "context to use instead of the current one")
	flags.StringVar(&a.ActAs, "as", "", "act as this user, by e-mail or ID, with exactly their permissions")
	flags.Lookup("as").Annotations = map[string][]string{fieldOf: {"X-Berth-Act-As"}}
	flags.StringVarP(&a.format, "output", "o", "table", "output format: table, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp))
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if err := output.Valid(a.format); err != nil {
			return usageError{err}
		}
		return nil
	}
	root.AddCommand(commands...)
	a.completeNouns(root)
	return root
}

// Printer returns the printer for results.
func (a *App) Printer() output.Printer {
	p := output.Printer{W: a.Out, Format: a.format}
	if fd, ok := Terminal(a.Out); ok {
		p.Color = a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb"
		if w, _, err := term.GetSize(fd); err == nil {
			p.Width = w
		}
	}
	return p
}

// Table prints v as JSON or YAML for programs, and as the table that fill returns for people.
func (a *App) Table(v any, fill func() *output.Table) error {
	p := a.Printer()
	return p.Print(v, func() error { return p.Write(fill()) })
}

// Note prints a message that is not a result to standard error.
func (a *App) Note(format string, args ...any) {
	fmt.Fprintln(a.Err, output.Clean(fmt.Sprintf(format, args...)))
}

// Terminal returns the file descriptor of a stream if it is a terminal.
func Terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// Calm removes from a container's output everything that controls a terminal, except for colours.
// Output to a file or a pipe is unchanged.
func Calm(w io.Writer, raw bool) io.Writer {
	if _, ok := Terminal(w); !ok || raw {
		return w
	}
	return output.NewCalm(w)
}
