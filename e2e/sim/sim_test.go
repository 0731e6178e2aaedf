package sim

import (
	"flag"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

var (
	first = flag.Uint64("sim.seed", 1, "the first seed")
	count = flag.Int("sim.seeds", 0, "how many seeds; 0 is 1000, or 50 with -short")
	loud  = flag.Bool("sim.trace", false, "print every step")
)

// TestReplay plays seeds twice: they go the same way.
func TestReplay(t *testing.T) {
	dsn := database(t)
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, dsn)
		defer at.db.Close()
		n := uint64(max(*count, 10))
		sums := map[uint64]result{}
		for range 2 {
			for seed := *first; seed < *first+n; seed++ {
				r := run(t, at, seed, nil)
				if before, ok := sums[seed]; ok && (before.sum != r.sum || before.steps != r.steps) {
					t.Errorf("seed %d went another way: %d steps, before %d", seed, r.steps, before.steps)
				}
				sums[seed] = r
			}
		}
	})
}

func TestSeeds(t *testing.T) {
	n := *count
	if n == 0 {
		n = 1000
	}
	var trace io.Writer
	if *loud {
		trace = os.Stderr
	}
	dsn := database(t)
	begun := realNow()
	var steps, asked int
	var simulated time.Duration
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, dsn)
		defer at.db.Close()
		for seed := *first; seed < *first+uint64(n); seed++ {
			r := run(t, at, seed, trace)
			steps, asked, simulated = steps+r.steps, asked+r.asked, simulated+r.simulated
			for _, b := range r.broken {
				t.Errorf("seed %d: %s\ngo test ./e2e/sim -run TestSeeds -sim.seed %d -sim.seeds 1 -sim.trace", seed, b, seed)
			}
			if *loud {
				t.Logf("seed %d: %+v", seed, r)
			}
		}
	})
	took := realNow().Sub(begun)
	t.Logf("%d seeds in %s: %.1f seeds/s, %d steps, %d sessions, %.2f simulated hours per second", n, took.Round(time.Millisecond),
		float64(n)/took.Seconds(), steps, asked, simulated.Hours()/took.Seconds())
}
