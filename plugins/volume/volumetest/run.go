package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Outcome of a check.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "pass"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "skip"
)

// Result is what a check found.
type Result struct {
	Check   Check
	Outcome Outcome
	Detail  string // why it failed or was skipped, or what it measured
	Log     string // the plugin's log of a failed check
	Took    time.Duration
}

// checkTimeout leaves room for products that answer through a job.
const checkTimeout = 3 * time.Minute

// skip is a check's error when there is nothing for it to look at.
type skip string

func (s skip) Error() string { return string(s) }

// note is a check's error when all is well and there is a figure to tell.
type note string

func (n note) Error() string { return string(n) }

// Run runs the checks named, or all, one after the other, since what one makes on
// the volume another would see, and reports each.
func Run(ctx context.Context, p Plugin, only []string, report func(Result)) error {
	p, err := p.ready()
	if err != nil {
		return err
	}
	all := Checks()
	for _, name := range only {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name == name }) {
			return fmt.Errorf("there is no check %q", name)
		}
	}
	for _, c := range all {
		if len(only) == 0 || slices.Contains(only, c.Name) {
			report(p.run(ctx, c))
		}
	}
	return ctx.Err()
}

// Test runs the suite as subtests. With -short it does not: the suite takes a
// while, and the race detector, for which short runs are, sees nothing of another
// process.
func Test(t *testing.T, p Plugin) {
	t.Helper()
	if testing.Short() {
		t.Skip("the suite takes a while")
	}
	p, err := p.ready()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			switch r := p.run(t.Context(), c); r.Outcome {
			case Failed:
				t.Errorf("%s\nwant: %s\n%s", r.Detail, c.Want, r.Log)
			case Skipped:
				t.Skip(r.Detail)
			case Passed:
				t.Log(r.Detail)
			}
		})
	}
}

// ready looks at the program. It is started elsewhere, so its path is made absolute.
func (p Plugin) ready() (Plugin, error) {
	info, err := os.Stat(p.Path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is no program", p.Path)
	}
	if err == nil {
		p.Path, err = filepath.Abs(p.Path)
	}
	return p, err
}

func (p Plugin) run(ctx context.Context, c Check) Result {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	r := Result{Check: c, Outcome: Passed}
	b, err := newBench(p)
	if err == nil {
		err = c.run(ctx, b)
	}
	closed := b.close()
	if err == nil || closed != nil {
		err = errors.Join(err, closed)
	}
	r.Took = time.Since(began)
	var s skip
	var n note
	switch {
	case err == nil:
	case errors.As(err, &s):
		r.Outcome, r.Detail = Skipped, s.Error()
	case errors.As(err, &n) && err == error(n):
		r.Detail = n.Error()
	default:
		r.Outcome, r.Detail, r.Log = Failed, err.Error(), b.logs.String()
	}
	return r
}
