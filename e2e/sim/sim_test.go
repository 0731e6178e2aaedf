package sim

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	first  = flag.Uint64("sim.seed", 1, "the first seed")
	count  = flag.Int("sim.seeds", 0, "how many seeds; 0 is as many as begin within -sim.for")
	limit  = flag.Duration("sim.for", time.Minute, "for how long seeds are begun, without -sim.seeds")
	loud   = flag.Bool("sim.trace", false, "print every step")
	stride = flag.Int("sim.stride", 0, "every how manieth seed is this process's; 0 is to start processes")
)

// TestSeeds runs seeds in as many processes as there are processors, because the run of a seed must
// not depend on goroutines on other processors. It runs a given number of seeds, or as many as
// possible in a given time, and reports the number.
func TestSeeds(t *testing.T) {
	n := *count
	if *stride > 0 {
		part(t, n, *stride)
		return
	}
	begun := realNow()
	var all []result
	var mu sync.Mutex
	var parts sync.WaitGroup
	processes := runtime.NumCPU()
	if n > 0 {
		processes = min(processes, n)
	}
	for i := range processes {
		parts.Go(func() {
			mine := (n - i + processes - 1) / processes // 0 with a time limit
			err := elsewhere(t, *first+uint64(i), mine, processes, func(r result) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, r)
			})
			if err != nil {
				t.Errorf("process %d of %d: %v", i, processes, err)
			}
		})
	}
	parts.Wait()
	summary(t, all, realNow().Sub(begun))
	if least := max(n, processes); len(all) < least {
		t.Errorf("%d of at least %d seeds were played", len(all), least)
	}
}

// hung is the longest real time of one seed. A seed normally takes about half a second, so after
// this time something waits for an event that never comes.
const hung = 2 * time.Minute

// elsewhere runs seeds in another process of this program. A process that hangs is ended, and
// prints the stacks of all goroutines.
func elsewhere(t *testing.T, seed uint64, n, stride int, got func(result)) error {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSeeds$", "-test.v", fmt.Sprint("-sim.seed=", seed), fmt.Sprint("-sim.seeds=", n),
		fmt.Sprint("-sim.stride=", stride), fmt.Sprint("-sim.for=", *limit), fmt.Sprint("-sim.trace=", *loud))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	guard := time.AfterFunc(hung, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer guard.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	var said []string
	played := 0
	for lines.Scan() {
		line, is := strings.CutPrefix(lines.Text(), mark)
		var r result
		if !is || json.Unmarshal([]byte(line), &r) != nil {
			said = append(said, lines.Text())
			continue
		}
		guard.Reset(hung)
		played++
		got(r)
	}
	err = cmd.Wait()
	if !guard.Stop() {
		return fmt.Errorf("seed %d was not over after %s: %w", seed+uint64(played*stride), hung, err)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(said, "\n"))
	}
	return nil
}

// mark begins the line that reports a seed.
const mark = "seed played: "

// part runs every stride-th seed: n seeds or, for n = 0, as many as the time limit allows but at
// least one.
func part(t *testing.T, n, stride int) {
	var trace io.Writer
	if *loud {
		trace = os.Stderr
	}
	dsn := database(t)
	begun := realNow()
	synctest.Test(t, func(t *testing.T) {
		at := newPlace(t, dsn)
		defer at.db.Close()
		for i := 0; i < n || n == 0 && (i == 0 || realNow().Sub(begun) < *limit); i++ {
			line, err := json.Marshal(run(t, at, *first+uint64(i*stride), trace))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("%s%s\n", mark, line)
		}
	})
}

func summary(t *testing.T, all []result, took time.Duration) {
	t.Helper()
	slices.SortFunc(all, func(a, b result) int { return int(a.Seed) - int(b.Seed) })
	var steps, asked int
	var simulated time.Duration
	for _, r := range all {
		steps, asked, simulated = steps+r.Steps, asked+r.Asked, simulated+r.Simulated
		if len(r.Broken) > 0 {
			t.Errorf("seed %d: %s\nagain: go test ./e2e/sim -count 3 -run TestSeeds -sim.seed %d -sim.seeds 1 -sim.trace", r.Seed, strings.Join(r.Broken, "\n"), r.Seed)
		}
	}
	t.Logf("%d seeds in %s: %.1f seeds/s, %.2f simulated hours per second; %d steps, %d sessions requested",
		len(all), took.Round(time.Millisecond), float64(len(all))/took.Seconds(), simulated.Hours()/took.Seconds(), steps, asked)
}

// TestReplay runs seeds in two processes, whose runs must be equal. A few runs can differ, because
// a select takes any of several ready channels.
func TestReplay(t *testing.T) {
	if *stride > 0 {
		t.Skip("belongs to TestSeeds")
	}
	n := max(*count, 20)
	var sums [2]map[uint64]result
	var both sync.WaitGroup
	for i := range sums {
		sums[i] = map[uint64]result{}
		both.Go(func() {
			if err := elsewhere(t, *first, n, 1, func(r result) { sums[i][r.Seed] = r }); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	var two []uint64
	for seed, a := range sums[0] {
		if b := sums[1][seed]; a.Sum != b.Sum || a.Steps != b.Steps {
			two = append(two, seed)
		}
	}
	if t.Logf("%d of %d seeds went two ways: %v", len(two), n, two); len(two) > n/4 {
		t.Error("that is too many")
	}
	if len(sums[0]) != n {
		t.Errorf("%d of %d seeds were played", len(sums[0]), n)
	}
}
