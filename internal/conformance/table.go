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
		return nil, fmt.Errorf("%s has no plugins", dir)
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	free := make(chan struct{}, max(s.AtOnce, 1))
	runs := make([][]<-chan run, len(columns))
	for i, c := range columns {
		for _, e := range c.Environments {
			runs[i] = append(runs[i], begin(ctx, e, only, free))
		}
	}
	var found []*findings
	all := sums{}
	for i, c := range columns {
		f := &findings{plugin: c.Plugin, cells: map[string]suite.Outcome{}}
		for j, e := range c.Environments {
			r, sums := <-runs[i][j], sums{}
			if r.err != nil && err == nil {
				err = fmt.Errorf("%s on %q: %w", c.Plugin, e.Name, r.err)
				stop()
			}
			if err != nil {
				continue // the others end before this returns
			}
			for _, r := range r.results {
				sums[r.Outcome]++
				all[r.Outcome]++
				f.add(e.Name, r)
			}
			fmt.Fprintf(w, "%-13s %33s %5.0f s  %s\n", c.Plugin, sums, r.took.Seconds(), cmp.Or(e.Name, "no environment"))
		}
		found = append(found, f)
	}
	if err != nil {
		return false, err
	}
	draw(w, s.Checks, found)
	fmt.Fprintln(w, all)
	return all[suite.Failed] > 0, nil
}

// run has the results of one plugin in one environment.
type run struct {
	results []suite.Result
	took    time.Duration
	err     error
}

// begin runs the checks in an environment as soon as one of the places is free.
func begin(ctx context.Context, e Environment, only []string, free chan struct{}) <-chan run {
	out := make(chan run, 1)
	go func() {
		free <- struct{}{}
		defer func() { <-free }()
		var r run
		began := time.Now()
		r.err = e.Run(ctx, only, func(one suite.Result) { r.results = append(r.results, one) })
		r.took = time.Since(began)
		out <- r
	}()
	return out
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
			continue // not selected
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
