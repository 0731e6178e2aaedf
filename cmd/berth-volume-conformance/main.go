// Command berth-volume-conformance proves that a volume plugin
// keeps the contract. It exits with 0 when every check passed or had nothing
// to look at, 1 when one failed, 2 when it could not be run.
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

	"github.com/berthhq/berth/plugins/volume/volumetest"
)

const usage = `Usage: berth-volume-conformance [flags] BINARY

Runs the volume plugin BINARY as a storage proxy would and checks what it
promises: one line for each check, and a last line with the sums.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("berth-volume-conformance", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage); fs.PrintDefaults() }
	options := fs.String("options", "", "the volume's options: JSON, or @FILE")
	only := fs.String("only", "", "names of checks to run, separated by commas")
	list := fs.Bool("list", false, "print the checks and what they want")
	verbose := fs.Bool("v", false, "show what each check wants, and the plugin's log of failed ones")
	env := fs.String("env", "", "variables for the plugin, NAME=VALUE separated by commas")
	mount := fs.String("mount", "", "where the product is mounted; checks make and remove scopes there (default: a fresh directory)")

	binary, err := parse(fs, args)
	if err != nil {
		return 2 // the flag package has said why
	}
	switch {
	case *list:
		for _, c := range volumetest.Checks() {
			fmt.Fprintf(stdout, "%-18s %s\n", c.Name, c.Want)
		}
		return 0
	case binary == "":
		fs.Usage()
		return 2
	}
	p := volumetest.Plugin{Path: binary, Options: *options, Mount: *mount, Env: split(*env)}
	if file, ok := strings.CutPrefix(*options, "@"); ok {
		raw, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		p.Options = string(raw)
	}
	return check(ctx, p, split(*only), *verbose, stdout, stderr)
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

func check(ctx context.Context, p volumetest.Plugin, only []string, verbose bool, stdout, stderr io.Writer) int {
	sums := map[volumetest.Outcome]int{}
	err := volumetest.Run(ctx, p, only, func(r volumetest.Result) {
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
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n",
		sums[volumetest.Passed], sums[volumetest.Failed], sums[volumetest.Skipped])
	if sums[volumetest.Failed] > 0 {
		return 1
	}
	return 0
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
