package conformance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berthhq/berth/plugins/suite"
)

// Column is a plugin in a table, in all its lanes.
type Column struct {
	Plugin string
	Lanes  []Lane
}

// Programs lists the plugins of a directory. Beside them lies what they need, such
// as libraries.
func Programs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.Ext(e.Name()) == "" {
			out = append(out, e.Name())
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no plugins", dir)
	}
	return out, nil
}

// table runs every plugin of a directory in all its lanes.
func table(ctx context.Context, s Suite, dir string, only []string, w io.Writer) (failed bool, err error) {
	columns, err := s.Columns(dir)
	if err != nil {
		return false, err
	}
	var found []*findings
	for _, c := range columns {
		f := &findings{Column: c, sums: sums{}, cells: map[string]suite.Outcome{}}
		for _, l := range c.Lanes {
			if err := l.Run(ctx, only, func(r suite.Result) { f.add(l.Name, r) }); err != nil {
				return false, fmt.Errorf("%s on %q: %w", c.Plugin, l.Name, err)
			}
		}
		found = append(found, f)
	}
	draw(w, s.Checks, found)
	return slices.ContainsFunc(found, func(f *findings) bool { return f.sums[suite.Failed] > 0 }), nil
}

// findings are a column's.
type findings struct {
	Column
	sums     sums
	cells    map[string]suite.Outcome // by check
	failures []string
}

// add takes a result in: one failure fails the cell, one pass outweighs skips.
func (f *findings) add(lane string, r suite.Result) {
	f.sums[r.Outcome]++
	was := f.cells[r.Name]
	if r.Outcome == suite.Failed || was == "" || was == suite.Skipped {
		f.cells[r.Name] = r.Outcome
	}
	if r.Outcome == suite.Failed {
		at := f.Plugin
		if lane != "" {
			at += " on " + lane
		}
		f.failures = append(f.failures, fmt.Sprintf("%s: %s: %s", at, r.Name, r.Detail))
	}
}

// draw prints checks as rows and plugins as columns, then what failed.
func draw(w io.Writer, checks []suite.Check, found []*findings) {
	row := func(name string, cell func(*findings) string) {
		fmt.Fprintf(w, "%-18s", name)
		for _, f := range found {
			fmt.Fprintf(w, " %*s", max(len(f.Plugin), 4), cell(f))
		}
		fmt.Fprintln(w)
	}
	row("", func(f *findings) string { return f.Plugin })
	for _, c := range checks {
		row(c.Name, func(f *findings) string {
			return map[suite.Outcome]string{suite.Passed: "ok", suite.Failed: "FAIL", suite.Skipped: "-"}[f.cells[c.Name]]
		})
	}
	all := sums{}
	fmt.Fprintln(w)
	for _, f := range found {
		var on []string
		for _, l := range f.Lanes {
			on = append(on, cmp.Or(l.Name, "nothing made for it"))
		}
		fmt.Fprintf(w, "%-12s %33s: %s\n", f.Plugin, f.sums, strings.Join(on, ", "))
		for o, n := range f.sums {
			all[o] += n
		}
	}
	for _, f := range found {
		for _, why := range f.failures {
			fmt.Fprintln(w, "FAIL", why)
		}
	}
	fmt.Fprintln(w, all)
}
