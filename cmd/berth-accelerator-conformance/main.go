// Command berth-accelerator-conformance proves that an accelerator plugin, or
// every one in a directory, keeps the contract. It exits with 0 when every check
// passed or had nothing to look at, 1 when one failed, 2 when it could not be
// run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

const usage = `Usage: berth-accelerator-conformance [flags] BINARY
       berth-accelerator-conformance --plugins DIR

Runs the accelerator plugin BINARY as an agent would and checks what it
promises: one line for each check, and a last line with the sums. With
--fixture it does so on a machine that is made up; without, what only
hardware shows is skipped. --plugins prints a table of all plugins in a
directory, each on every built-in machine that names it.

Exit code: 0 nothing failed, 1 a check failed, 2 it could not be run.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("berth-accelerator-conformance", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage); fs.PrintDefaults() }
	config := fs.String("config", "", "the plugin's settings: JSON, or @FILE")
	only := fs.String("only", "", "names of checks to run, separated by commas")
	listing := fs.Bool("list", false, "print the checks and what they want")
	verbose := fs.Bool("v", false, "show what each check wants, and the plugin's log of failed ones")
	env := fs.String("env", "", "variables for the plugin, NAME=VALUE separated by commas")
	root := fs.String("root", "", "directory with sys, dev, proc and driver trees to find hardware in")
	plugins := fs.String("plugins", "", "directory of plugins to print a table of")
	var machines list
	fs.Var(&machines, "fixture", "machine to run on, a built-in `NAME`, a directory or a YAML file; may be given again")

	binary, err := parse(fs, args)
	if err != nil {
		return 2 // the flag package has said why
	}
	switch {
	case *listing:
		for _, c := range acceleratortest.Checks() {
			fmt.Fprintf(stdout, "%-18s %s\n", c.Name, c.Want)
		}
		return 0
	case *plugins != "" && binary == "" && *root == "" && *config == "" && len(machines) == 0:
		return table(ctx, *plugins, split(*only), stdout, stderr)
	case binary == "" || *plugins != "" || *root != "" && len(machines) > 0:
		fs.Usage()
		return 2
	}
	p := acceleratortest.Plugin{Path: binary, Config: []byte(*config), Env: split(*env)}
	if file, ok := strings.CutPrefix(*config, "@"); ok {
		raw, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		p.Config = raw
	}
	if *root != "" {
		p.Roots = &pb.Roots{Sys: *root + "/sys", Dev: *root + "/dev", Proc: *root + "/proc", Driver: *root + "/driver", Path: []string{*root + "/bin"}}
	}
	return check(ctx, p, machines, split(*only), *verbose, stdout, stderr)
}

// parse takes flags before and after the one argument.
func parse(fs *flag.FlagSet, args []string) (binary string, err error) {
	for {
		if err := fs.Parse(args); err != nil || fs.NArg() == 0 {
			return binary, err
		}
		if binary != "" {
			fs.Usage()
			return "", fmt.Errorf("more than one binary")
		}
		binary, args = fs.Arg(0), fs.Args()[1:]
	}
}

// check runs the suite on each machine, or once without one.
func check(ctx context.Context, p acceleratortest.Plugin, machines, only []string, verbose bool, stdout, stderr io.Writer) int {
	sums := map[acceleratortest.Outcome]int{}
	if len(machines) == 0 {
		machines = []string{""}
	}
	for _, p.Fixture = range machines {
		if p.Fixture != "" {
			fmt.Fprintln(stdout, "on "+p.Fixture)
		}
		err := acceleratortest.Run(ctx, p, only, func(r acceleratortest.Result) {
			sums[r.Outcome]++
			line := fmt.Sprintf("%s  %-18s %6.2fs", r.Outcome, r.Check.Name, r.Took.Seconds())
			if r.Detail != "" {
				line += "  " + strings.ReplaceAll(r.Detail, "\n", "; ")
			}
			fmt.Fprintln(stdout, line)
			if verbose {
				fmt.Fprintln(stdout, "      want:", r.Check.Want)
				fmt.Fprint(stdout, r.Log)
			}
		})
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n",
		sums[acceleratortest.Passed], sums[acceleratortest.Failed], sums[acceleratortest.Skipped])
	if sums[acceleratortest.Failed] > 0 {
		return 1
	}
	return 0
}

// list is a flag that may be given again.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
