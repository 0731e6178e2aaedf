package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/berthhq/berth/internal/conformance"
	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

// columns returns a column for each plugin of a directory on each simulated machine made for it. A
// simulated machine without its plugin is an error, because its checks would silently not run.
func columns(dir string) ([]conformance.Column, error) {
	names, err := conformance.Programs(dir)
	if err != nil {
		return nil, err
	}
	machines, here := map[string][]string{}, map[string]bool{}
	for _, n := range names {
		here[n] = true
	}
	var errs []error
	for _, name := range fixture.Names() {
		m, err := fixture.Load(name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !here[m.Plugin]:
			errs = append(errs, fmt.Errorf("machine %s is for the plugin %s, which is not in %s", name, m.Plugin, dir))
		default:
			machines[m.Plugin] = append(machines[m.Plugin], name)
		}
	}
	var out []conformance.Column
	for _, n := range names {
		if n != "template" { // an example
			out = append(out, conformance.Column{Plugin: n, Environments: environments(acceleratortest.Plugin{Path: filepath.Join(dir, n)}, machines[n])})
		}
	}
	return out, errors.Join(errs...)
}
