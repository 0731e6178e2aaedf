// Command berth-accelerator-conformance runs the conformance suite on one accelerator plugin, or on
// every plugin of a directory. It exits with 0 when no check failed, 1 when one failed, and 2 when
// the suite could not run.
package main

import (
	"context"
	"errors"
	"flag"

	"github.com/berthhq/berth/internal/conformance"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
	"github.com/berthhq/berth/plugins/suite"
)

const usage = `Usage: berth-accelerator-conformance [flags] BINARY
       berth-accelerator-conformance --plugins DIR

Runs the accelerator plugin BINARY as an agent would and checks what it
promises: one line for each check, and a last line with the sums. With
--fixture it does so on a machine that is made up; without, what only
hardware shows is skipped. --plugins prints a table of all plugins in a
directory, each on every built-in machine that names it.

Exit code: 0 nothing failed, 1 a check failed, 2 it could not be run.
`

// machinesAtOnce is how many simulated machines are checked at the same time: most of a check is
// waiting for plugins.
const machinesAtOnce = 4

func main() { conformance.Main(contract()) }

func contract() conformance.Suite {
	fs := flag.NewFlagSet("berth-accelerator-conformance", flag.ContinueOnError)
	config := fs.String("config", "", "the plugin's settings: a `FILE` in YAML or JSON, or {...} itself")
	root := fs.String("root", "", "directory with sys, dev, proc and driver trees to find hardware in")
	var machines conformance.List
	fs.Var(&machines, "fixture", "machine to run on, a built-in `NAME`, a directory or a YAML file; may be given again")

	s := conformance.Suite{Usage: usage, Flags: fs, Columns: columns, AtOnce: machinesAtOnce}
	for _, c := range acceleratortest.Checks() {
		s.Checks = append(s.Checks, suite.Check{Name: c.Name, Want: c.Want})
	}
	s.Environments = func(binary string, env []string) ([]conformance.Environment, error) {
		settings, err := conformance.Object(*config)
		if err != nil {
			return nil, err
		}
		p := acceleratortest.Plugin{Path: binary, Config: settings, Env: env}
		if *root != "" {
			p.Roots = &pb.Roots{Sys: *root + "/sys", Dev: *root + "/dev", Proc: *root + "/proc", Driver: *root + "/driver", Path: []string{*root + "/bin"}}
			if len(machines) > 0 {
				return nil, errors.New("--root and --fixture are two sorts of hardware: want one of them")
			}
		}
		return environments(p, machines), nil
	}
	return s
}

// environments returns an environment for each machine, or one without a simulated machine.
func environments(p acceleratortest.Plugin, machines []string) []conformance.Environment {
	if len(machines) == 0 {
		machines = []string{""}
	}
	var out []conformance.Environment
	for _, machine := range machines {
		p := p // a copy for each environment
		p.Fixture = machine
		out = append(out, conformance.Environment{Name: machine, Run: func(ctx context.Context, only []string, report func(suite.Result)) error {
			return acceleratortest.Run(ctx, p, only, report)
		}})
	}
	return out
}
