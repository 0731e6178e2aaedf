package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/plugins/accelerator/acceleratortest"
)

// column is what the suite found out about one plugin on all its machines.
type column struct {
	plugin   string
	machines []string // "" = none
	sums     map[acceleratortest.Outcome]int
	cells    map[string]acceleratortest.Outcome // by check
	failures []string
}

// table runs every plugin of a directory on every machine made for it.
func table(ctx context.Context, dir string, only []string, stdout, stderr io.Writer) int {
	columns, err := plan(dir)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	failed := false
	for _, c := range columns {
		for _, m := range c.machines {
			p := acceleratortest.Plugin{Path: filepath.Join(dir, c.plugin), Fixture: m}
			if err := acceleratortest.Run(ctx, p, only, func(r acceleratortest.Result) { c.add(m, r) }); err != nil {
				fmt.Fprintf(stderr, "%s on %q: %v\n", c.plugin, m, err)
				return 2
			}
		}
		failed = failed || len(c.failures) > 0
	}
	draw(stdout, columns)
	if failed {
		return 1
	}
	return 0
}

// plan lists the plugins with their machines, and machines without a plugin,
// which are an error: nobody would run on them.
func plan(dir string) ([]*column, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	byPlugin := map[string]*column{}
	var out []*column
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		// Beside the programs lies what they need, such as libraries.
		if e.Name() == "template" || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || filepath.Ext(e.Name()) != "" {
			continue
		}
		c := &column{plugin: e.Name(), sums: map[acceleratortest.Outcome]int{}, cells: map[string]acceleratortest.Outcome{}}
		byPlugin[c.plugin] = c
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no plugins", dir)
	}
	var errs []error
	for _, name := range fixture.Names() {
		m, err := fixture.Load(name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case byPlugin[m.Plugin] == nil:
			errs = append(errs, fmt.Errorf("machine %s is for the plugin %s, which is not in %s", name, m.Plugin, dir))
		default:
			byPlugin[m.Plugin].machines = append(byPlugin[m.Plugin].machines, name)
		}
	}
	for _, c := range out {
		if len(c.machines) == 0 {
			c.machines = []string{""}
		}
	}
	return out, errors.Join(errs...)
}

// add takes a result in: one failure fails the cell, one pass outweighs skips.
func (c *column) add(machine string, r acceleratortest.Result) {
	c.sums[r.Outcome]++
	was := c.cells[r.Check.Name]
	if r.Outcome == acceleratortest.Failed || was == "" || was == acceleratortest.Skipped {
		c.cells[r.Check.Name] = r.Outcome
	}
	if r.Outcome == acceleratortest.Failed {
		at := c.plugin
		if machine != "" {
			at += " on " + machine
		}
		c.failures = append(c.failures, fmt.Sprintf("%s: %s: %s", at, r.Check.Name, r.Detail))
	}
}

// draw prints checks as rows and plugins as columns, then what failed.
func draw(w io.Writer, columns []*column) {
	row := func(name string, cell func(*column) string) {
		fmt.Fprintf(w, "%-18s", name)
		for _, c := range columns {
			fmt.Fprintf(w, " %*s", max(len(c.plugin), 4), cell(c))
		}
		fmt.Fprintln(w)
	}
	row("", func(c *column) string { return c.plugin })
	for _, k := range acceleratortest.Checks() {
		row(k.Name, func(c *column) string {
			return map[acceleratortest.Outcome]string{acceleratortest.Passed: "ok", acceleratortest.Failed: "FAIL", acceleratortest.Skipped: "-"}[c.cells[k.Name]]
		})
	}
	sums := map[acceleratortest.Outcome]int{}
	for _, c := range columns {
		for o, n := range c.sums {
			sums[o] += n
		}
	}
	fmt.Fprintln(w)
	for _, c := range columns {
		on := strings.Join(c.machines, ", ")
		if on == "" {
			on = "no machine is made for it"
		}
		fmt.Fprintf(w, "%-12s %3d passed, %d failed, %d skipped: %s\n", c.plugin, c.sums[acceleratortest.Passed], c.sums[acceleratortest.Failed], c.sums[acceleratortest.Skipped], on)
	}
	for _, c := range columns {
		for _, f := range c.failures {
			fmt.Fprintln(w, "FAIL", f)
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", sums[acceleratortest.Passed], sums[acceleratortest.Failed], sums[acceleratortest.Skipped])
}
