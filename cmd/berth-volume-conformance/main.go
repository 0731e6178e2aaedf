// Command berth-volume-conformance runs the conformance suite on one volume plugin, or on every
// plugin of a directory. It exits with 0 when no check failed, 1 when one failed, and 2 when the
// suite could not run.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/berthhq/berth/internal/conformance"
	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

const usage = `Usage: berth-volume-conformance [flags] BINARY
       berth-volume-conformance --plugins DIR
       berth-volume-conformance --simulator NAME

Runs the volume plugin BINARY as a storage proxy would and checks what it
promises, on the disk too: one line for each check, and a last line with the
sums. --options and --mount say where its product is. --plugins prints a table
of all plugins in a directory, each in each of its environments; an environment
that cannot be on this machine is skipped with the reason. --simulator runs the
simulator of a plugin's product until it is interrupted, and prints where it is
mounted and in which file the options are that lead to it.

Exit code: 0 nothing failed, 1 a check failed, 2 it could not be run.
`

func main() {
	boot()
	if asked, code := serve(context.Background(), os.Args[1:], os.Stdout, os.Stderr); asked {
		os.Exit(code)
	}
	conformance.Main(contract())
}

func contract() conformance.Suite {
	fs := flag.NewFlagSet("berth-volume-conformance", flag.ContinueOnError)
	options := fs.String("options", "", "the volume's options: a `FILE` in YAML or JSON, or {...} itself")
	mount := fs.String("mount", "", "where the product is mounted; checks make and remove scopes there (default: a fresh directory)")

	s := conformance.Suite{Usage: usage, Flags: fs, Columns: columns}
	for _, c := range volumetest.Checks() {
		s.Checks = append(s.Checks, suite.Check{Name: c.Name, Want: c.Want})
	}
	s.Environments = func(binary string, env []string) ([]conformance.Environment, error) {
		settings, err := conformance.Object(*options)
		if err != nil {
			return nil, err
		}
		p := volumetest.Plugin{Path: binary, Options: string(settings), Mount: *mount, Env: env}
		return []conformance.Environment{{Run: func(ctx context.Context, only []string, report func(suite.Result)) error {
			return volumetest.Run(ctx, p, only, report)
		}}}, nil
	}
	return s
}
