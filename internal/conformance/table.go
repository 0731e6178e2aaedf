package conformance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/berthhq/berth/plugins/suite"
)

// Column is one plugin in a table, with all its environments.
type Column struct {
	Plugin       string
	Environments []Environment
}

// Programs returns the plugins in a directory, which can also contain other files, such as
// libraries.
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

// table runs every plugin of a directory in all its environments. It prints a line for each
// finished environment, and the table at the end.
func table(ctx context.Context, s Suite, dir string, only []string, w io.Writer) (failed bool, err error) {
	columns, err := s.Columns(dir)
	if err != nil {
		return false, err
	}
	var found []*findings
	all := sums{}
	for _, c := range columns {
		f := &findings{plugin: c.Plugin, cells: map[string]suite.Outcome{}}
		for _, l := range c.Environments {
			began, sums := time.Now(), sums{}
			err := l.Run(ctx, only, func(r suite.Result) {
				sums[r.Outcome]++
				all[r.Outcome]++
				f.add(l.Name, r)
			})
			if err != nil {
				return false, fmt.Errorf("%s on %q: %w", c.Plugin, l.Name, err)
			}
			fmt.Fprintf(w, "%-13s %33s %5.0f s  %s\n", c.Plugin, sums, time.Since(began).Seconds(), cmp.Or(l.Name, "nothing made for it"))
		}
		found = append(found, f)
	}
	draw(w, s.Checks, found)
	fmt.Fprintln(w, all)
	return all[suite.Failed] > 0, nil
}

// findings are the results of one plugin, a column of the table.
type findings struct {
	plugin   string
	cells    map[string]suite.Outcome // by check
	failures []string
}

// add adds a result: one failure fails the cell, one pass outweighs skips.
func (f *findings) add(environment string, r suite.Result) {
	was := f.cells[r.Name]
	if r.Outcome == suite.Failed || was == "" || was == suite.Skipped {
		f.cells[r.Name] = r.Outcome
	}
	if r.Outcome == suite.Failed {
		at := f.plugin
		if environment != "" {
			at += " on " + environment
		}
		f.failures = append(f.failures, fmt.Sprintf("%s: %s: %s", at, r.Name, r.Detail))
	}
}

// draw prints checks as rows and plugins as columns, then the failures.
func draw(w io.Writer, checks []suite.Check, found []*findings) {
	row := func(name string, cell func(*findings) string) {
		fmt.Fprintf(w, "%-18s", name)
		for _, f := range found {
			fmt.Fprintf(w, " %*s", max(len(f.plugin), 4), cell(f))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	row("", func(f *findings) string { return f.plugin })
	for _, c := range checks {
		if !slices.ContainsFunc(found, func(f *findings) bool { return f.cells[c.Name] != "" }) {
			continue // others were asked for
		}
		row(c.Name, func(f *findings) string {
			return map[suite.Outcome]string{suite.Passed: "ok", suite.Failed: "FAIL", suite.Skipped: "-"}[f.cells[c.Name]]
		})
	}
	fmt.Fprintln(w)
	for _, f := range found {
		for _, why := range f.failures {
			fmt.Fprintln(w, "FAIL", why)
		}
	}
}
