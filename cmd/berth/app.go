package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/config"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what every command works with.
type app struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	env func(string) string
	now func() time.Time

	// version is the version of this program.
	version string

	// ownSignals hands interrupts over to the command that calls it.
	ownSignals func()

	contextName string
	actAs       string
	format      string
}

func newApp(in io.Reader, out, err io.Writer, env func(string) string) *app {
	return &app{in: in, out: out, err: err, env: env, now: time.Now, version: "dev", ownSignals: func() {}}
}

// main runs one command line with these commands and returns the exit code.
func (a *app) main(ctx context.Context, args []string, commands ...*cobra.Command) int {
	root := a.root(commands...)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.finish(cmd, err)
}

// root returns the command that all others belong to.
func (a *app) root(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Work with a Berth cluster",
		Version:       a.version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          needsVerb,
		RunE:          showHelp,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.contextName, "context", "", "context to use instead of the current one")
	flags.StringVar(&a.actAs, "as", "", "act as this user, by e-mail or ID, with exactly their permissions")
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
	return root
}

// oneself refuses --as where only one's own credentials are meant.
func (a *app) oneself() error {
	if a.actAs != "" {
		return usagef("--as cannot be used with login and logout")
	}
	return nil
}

// group returns a command that only has sub-commands.
func group(use, short string, sub ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: needsVerb, RunE: showHelp}
	cmd.AddCommand(sub...)
	return cmd
}

func needsVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{fmt.Errorf("%s", text)}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// count checks the number of arguments and says what is missing.
func count(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && (high < 0 || len(args) <= high) {
			return nil
		}
		return usagef("usage: %s", cmd.UseLine())
	}
}

// client returns a client for the chosen context, or for what BERTH_URL and
// the credentials in the environment say.
func (a *app) client() (*client.Client, error) {
	c, err := a.login()
	if err != nil {
		return nil, err
	}
	var made *client.Client
	if c.AccessKey != "" {
		made, err = client.NewSigned(c.URL, c.AccessKey, c.SecretKey, a.userAgent())
	} else {
		made, err = client.New(c.URL, c.Token, a.userAgent())
	}
	if err != nil || a.actAs == "" {
		return made, err
	}
	return made.As(a.actAs), nil
}

func (a *app) userAgent() string { return "berth/" + a.version }

// server is where to ask, and what to show there: a token, or a keypair to sign
// with.
type server struct{ URL, Token, AccessKey, SecretKey string }

// login finds out which server to ask, and as whom. A stored token goes only to
// the server that gave it.
func (a *app) login() (*server, error) {
	var c server
	if a.contextName == "" {
		c = server{a.env("BERTH_URL"), a.env("BERTH_TOKEN"), a.env("BERTH_ACCESS_KEY"), a.env("BERTH_SECRET_KEY")}
	}
	switch {
	case (c.AccessKey == "") != (c.SecretKey == ""):
		return nil, usagef("set both BERTH_ACCESS_KEY and BERTH_SECRET_KEY, or neither")
	case c.AccessKey != "" && c.Token != "":
		return nil, usagef("both BERTH_TOKEN and BERTH_ACCESS_KEY are set; choose one")
	}
	if shown := c.Token != "" || c.AccessKey != ""; !shown || c.URL == "" {
		_, f, err := a.config()
		if err != nil {
			return nil, err
		}
		stored, err := f.Get(a.contextName)
		if err != nil {
			return nil, err
		}
		if stored != nil && c.URL == "" {
			c.URL = stored.URL
		}
		if stored != nil && !shown && strings.TrimRight(c.URL, "/") == stored.URL {
			c.Token = stored.Token
		}
	}
	if c.URL == "" || c.Token == "" && c.AccessKey == "" {
		return nil, fmt.Errorf("not logged in; start with: berth login URL: %w", errdefs.ErrUnauthenticated)
	}
	return &c, nil
}

func (a *app) config() (path string, f *config.File, err error) {
	if path, err = config.Path(a.env); err != nil {
		return "", nil, err
	}
	f, err = config.Load(path)
	return path, f, err
}

// print returns the printer for results.
func (a *app) print() output.Printer {
	p := output.Printer{W: a.out, Format: a.format}
	if fd, ok := terminal(a.out); ok {
		p.Color = a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
		if w, _, err := term.GetSize(fd); err == nil {
			p.Width = w
		}
	}
	return p
}

// table prints v, for people as the table that fill makes.
func (a *app) table(v any, fill func() *output.Table) error {
	p := a.print()
	return p.Print(v, func() error { return p.Write(fill()) })
}

// note tells people something that is not a result.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.err, output.Clean(fmt.Sprintf(format, args...)))
}

// terminal returns the descriptor of a stream that is a terminal.
func terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}
