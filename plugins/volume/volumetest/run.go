package volumetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthhq/berth/plugins/suite"
)

// checkTimeout is long enough for products that handle a call in a job.
const checkTimeout = 3 * time.Minute

// Run runs the named checks, or all, and reports each. They run one after the other, because
// changes of one on the volume are visible to others.
func Run(ctx context.Context, p Plugin, only []string, report func(suite.Result)) error {
	checks, err := suite.Only(Checks(), func(c Check) string { return c.Name }, only)
	if err == nil {
		p.Path, err = suite.IsProgram(p.Path)
	}
	if err != nil {
		return err
	}
	for _, c := range checks {
		report(p.run(ctx, c))
	}
	return ctx.Err()
}

// Test runs the suite as subtests. It skips it with -short: the suite takes a while, and the race
// detector, for which short runs are made, cannot inspect another process.
func Test(t *testing.T, p Plugin) {
	t.Helper()
	if testing.Short() {
		t.Skip("the suite takes a while")
	}
	var err error
	if p.Path, err = suite.IsProgram(p.Path); err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) { p.run(t.Context(), c).Show(t) })
	}
}

func (p Plugin) run(ctx context.Context, c Check) suite.Result {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	b, err := newBench(p)
	if err == nil {
		err = c.run(ctx, b)
	}
	closed := b.close()
	if err == nil || closed != nil {
		err = errors.Join(err, closed)
	}
	return suite.Conclude(suite.Check{Name: c.Name, Want: c.Want}, err, time.Since(began), b.log)
}
