// Package conformance is the common part of the commands of the conformance suites: flags, one
// line per check, a table of all plugins, exit codes. The checks are in each suite's own
// package.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/plugins/suite"
)

// Exit codes: all checks passed, a check failed, the checks could not be run.
const (
	exitKept = iota
	exitBroken
	exitNotRun
)

// Environment is one situation in which a plugin is checked: a machine with some settings.
type Environment struct {
	Name string // "": the default
	// Run runs the named checks, or all, and reports each result. It returns an error if they
	// could not be run.
	Run func(ctx context.Context, only []string, report func(suite.Result)) error
}

// Suite is the suite of one contract.
type Suite struct {
	Usage  string        // printed above the flags
	Flags  *flag.FlagSet // the suite's own flags, with the name of the command
	Checks []suite.Check
	// Environments returns the environments of the binary; env is added to its environment
	// variables.
	Environments func(binary string, env []string) ([]Environment, error)
	// Columns returns the environments of all plugins in a directory. Optional.
	Columns func(dir string) ([]Column, error)
	// AtOnce is how many environments of a table run at the same time; 0 = one by one.
	AtOnce int
}

// Main is the main function of a suite's command.
func Main(s Suite) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, s, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run runs the command with its arguments. It returns the exit code.
func Run(ctx context.Context, s Suite, args []string, stdout, stderr io.Writer) int {
	var own []string
	s.Flags.VisitAll(func(f *flag.Flag) { own = append(own, f.Name) })
	s.Flags.Init(s.Flags.Name(), flag.ContinueOnError)
	s.Flags.SetOutput(stderr)
	s.Flags.Usage = func() { fmt.Fprint(stderr, s.Usage+"\nFlags:\n"); s.Flags.PrintDefaults() }
	only := s.Flags.String("only", "", "names of checks to run, separated by commas")
	listing := s.Flags.Bool("list", false, "print the checks and their requirements")
	verbose := s.Flags.Bool("v", false, "show the requirement of each check, and the plugin's log of failed ones")
	env := s.Flags.String("env", "", "variables for the plugin, NAME=VALUE separated by commas")
	plugins := new(string)
	if s.Columns != nil {
		plugins = s.Flags.String("plugins", "", "directory of plugins to print a table of")
		own = append(own, "env", "v") // are of one plugin too
	}
	binary, err := parse(s.Flags, args)
	if err != nil {
		return exitNotRun // parse has printed the error
	}
	failed := false
	switch {
	case *listing:
		for _, c := range s.Checks {
			fmt.Fprintf(stdout, "%-18s %s\n", c.Name, c.Want)
		}
	case *plugins != "":
		if binary != "" || given(s.Flags, own) {
			s.Flags.Usage()
			return exitNotRun
		}
		failed, err = table(ctx, s, *plugins, split(*only), stdout)
	case binary == "":
		s.Flags.Usage()
		return exitNotRun
	default:
		var environments []Environment
		if environments, err = s.Environments(binary, split(*env)); err == nil {
			failed, err = lines(ctx, environments, split(*only), *verbose, stdout)
		}
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitNotRun
	case failed:
		return exitBroken
	}
	return exitKept
}

// parse takes flags before and after the one argument.
func parse(fs *flag.FlagSet, args []string) (binary string, err error) {
	for {
		if err := fs.Parse(args); err != nil || fs.NArg() == 0 {
			return binary, err
		}
		if binary != "" {
			fs.Usage()
			return "", errors.New("more than one binary")
		}
		binary, args = fs.Arg(0), fs.Args()[1:]
	}
}

// given reports whether one of the flags was set.
func given(fs *flag.FlagSet, names []string) (yes bool) {
	fs.Visit(func(f *flag.Flag) { yes = yes || slices.Contains(names, f.Name) })
	return yes
}

// lines runs the checks in each environment, and prints a line for each and the totals.
func lines(ctx context.Context, environments []Environment, only []string, verbose bool, w io.Writer) (failed bool, err error) {
	sums := sums{}
	for _, l := range environments {
		if l.Name != "" {
			fmt.Fprintln(w, "on "+l.Name)
		}
		err := l.Run(ctx, only, func(r suite.Result) {
			sums[r.Outcome]++
			line := fmt.Sprintf("%s  %-18s %6.2fs", r.Outcome, r.Name, r.Took.Seconds())
			if r.Detail != "" {
				line += "  " + strings.ReplaceAll(r.Detail, "\n", "; ")
			}
			fmt.Fprintln(w, line)
			if verbose {
				fmt.Fprintln(w, "      want:", r.Want)
				fmt.Fprint(w, r.Log)
			}
		})
		if err != nil {
			return false, err
		}
	}
	fmt.Fprintln(w, sums)
	return sums[suite.Failed] > 0, nil
}

// sums counts results.
type sums map[suite.Outcome]int

func (s sums) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s[suite.Passed], s[suite.Failed], s[suite.Skipped])
}

// Object parses the value of a flag that takes an object: the object in braces, or the name of
// a file, in YAML or JSON. It returns JSON, or nil for an empty value.
func Object(flag string) ([]byte, error) {
	if flag == "" {
		return nil, nil
	}
	text, from := []byte(flag), "the given value"
	if !strings.HasPrefix(strings.TrimSpace(flag), "{") {
		raw, err := os.ReadFile(flag)
		if err != nil {
			return nil, err
		}
		text, from = raw, flag
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("%s is not an object: %s", from, yaml.FormatError(err, false, false)) // without the line, which may be a secret
	}
	if len(object) == 0 {
		return []byte("{}"), nil
	}
	return json.Marshal(object)
}

// List is a flag that can be repeated.
type List []string

func (l *List) String() string     { return strings.Join(*l, ",") }
func (l *List) Set(s string) error { *l = append(*l, s); return nil }

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
