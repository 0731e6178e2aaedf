package acceleratortest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthhq/berth/plugins/suite"
)

const (
	// checkTimeout limits one check.
	checkTimeout = 3 * time.Minute
	// timeout is the limit for operations to which the contract allows 5 s, because the suite must
	// also pass on a busy machine.
	timeout = 15 * time.Second
	// atOnce is the number of concurrent checks.
	atOnce = 4
)

// Run runs the named checks, or all, and reports the results in the order of Checks.
func Run(ctx context.Context, p Plugin, only []string, report func(suite.Result)) error {
	checks, err := suite.Only(Checks(), func(c Check) string { return c.Name }, only)
	if err != nil {
		return err
	}
	s, err := newSite(p)
	if err != nil {
		return err
	}
	for _, r := range s.begin(ctx, checks) {
		report(<-r)
	}
	return errors.Join(ctx.Err(), s.close())
}

// Test runs the suite as subtests. It skips it with -short: the suite takes seconds, and the race
// detector, for which short runs are made, cannot inspect another process.
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
		t.Run(c.Name, func(t *testing.T) { (<-results[i]).Show(t) })
	}
	cancel() // with -run, results of other checks do not matter
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// begin starts the checks with limited concurrency, and returns a channel for each result.
func (s *site) begin(ctx context.Context, checks []Check) []<-chan suite.Result {
	out := make([]<-chan suite.Result, len(checks))
	free := make(chan struct{}, atOnce)
	var last <-chan struct{} // closed when the previous check has started
	for i, c := range checks {
		r := make(chan suite.Result, 1)
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

func (s *site) run(ctx context.Context, c Check) suite.Result {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	b, err := s.bench()
	if err == nil {
		err = c.run(ctx, b)
		closed := b.close()
		if err == nil || closed != nil {
			err = errors.Join(err, closed)
		}
	}
	return suite.Conclude(suite.Check{Name: c.Name, Want: c.Want}, err, time.Since(began), b.log)
}
