package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"os"
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

const (
	// checkTimeout ends a check that would otherwise never end.
	checkTimeout = 90 * time.Second
	// patience is what a plugin gets for what the contract promises within 5 s:
	// the suite also runs on machines that are busy with other things.
	patience = 15 * time.Second
	// atOnce is how many checks run at the same time.
	atOnce = 4
)

// skip is a check's error when the plugin has nothing for it to look at.
type skip string

func (s skip) Error() string { return string(s) }

// note is a check's error when all is well and there is a figure to tell.
type note string

func (n note) Error() string { return string(n) }

// Run runs the checks named, or all, and reports each in the order of Checks.
func Run(ctx context.Context, p Plugin, only []string, report func(Result)) error {
	all := Checks()
	for _, name := range only {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name == name }) {
			return fmt.Errorf("there is no check %q", name)
		}
	}
	if len(only) > 0 {
		all = slices.DeleteFunc(all, func(c Check) bool { return !slices.Contains(only, c.Name) })
	}
	s, err := newSite(p)
	if err != nil {
		return err
	}
	for _, r := range s.begin(ctx, all) {
		report(<-r)
	}
	return errors.Join(ctx.Err(), s.close())
}

// Test runs the suite as subtests. With -short it does not: the suite takes seconds,
// and the race detector, for which short runs are, sees nothing of another process.
func Test(t *testing.T, p Plugin) {
	t.Helper()
	if testing.Short() {
		t.Skip("the suite takes seconds")
	}
	s, err := newSite(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	results := s.begin(ctx, Checks())
	for i, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			switch r := <-results[i]; r.Outcome {
			case Failed:
				t.Errorf("%s\nwant: %s\n%s", r.Detail, c.Want, r.Log)
			case Skipped:
				t.Skip(r.Detail)
			case Passed:
				t.Log(r.Detail)
			}
		})
	}
	cancel() // where -run named some only, the others need not end well
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// begin starts the checks, a few at a time, and returns where each result will be.
func (s *site) begin(ctx context.Context, checks []Check) []<-chan Result {
	out := make([]<-chan Result, len(checks))
	free := make(chan struct{}, atOnce)
	var last <-chan struct{} // the one before has been let in
	for i, c := range checks {
		r := make(chan Result, 1)
		out[i] = r
		in, before := make(chan struct{}), last
		last = in
		s.running.Go(func() {
			if before != nil {
				<-before
			}
			free <- struct{}{}
			close(in)
			defer func() { <-free }()
			r <- s.run(ctx, c)
		})
	}
	return out
}

func (s *site) run(ctx context.Context, c Check) (r Result) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	r = Result{Check: c, Outcome: Passed}
	b, err := s.bench()
	if err == nil {
		err = c.run(ctx, b)
		closed := b.close()
		if err == nil || closed != nil {
			err = errors.Join(err, closed)
		}
	}
	r.Took = time.Since(began)
	var sk skip
	var n note
	switch {
	case err == nil:
	case errors.As(err, &sk):
		r.Outcome, r.Detail = Skipped, sk.Error()
	case errors.As(err, &n) && err == error(n):
		r.Detail = n.Error()
	default:
		r.Outcome, r.Detail, r.Log = Failed, err.Error(), b.logs.String()
	}
	return r
}

func exists(file string) error {
	info, err := os.Stat(file)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is no program", file)
	}
	return err
}
