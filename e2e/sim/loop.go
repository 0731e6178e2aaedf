package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// perStep passes at every step, so that timers that are set in different steps end at different
// times.
const perStep = time.Microsecond

// loop decides which goroutine runs next. Before a process of the cluster accesses anything outside
// of its memory, it calls enter, which waits for its turn. From then on, the caller runs alone
// until all goroutines wait again. Between turns, time stands still; if no goroutine waits for a
// turn, time advances to the next timer.
type loop struct {
	*rand.Rand // only the goroutine with the turn draws from it

	begin   time.Time
	steps   int
	arrived chan struct{}
	sum     interface {
		io.Writer
		Sum64() uint64
	}
	trace io.Writer // nil = none

	mu    sync.Mutex
	gates []*gate
}

// gate is a goroutine that waits for its turn.
type gate struct {
	ctx    context.Context // the goroutine stops waiting when it ends
	step   int             // step in which the goroutine began to wait
	key    string
	detail string
	open   chan struct{}
}

func newLoop(seed uint64, trace io.Writer) *loop {
	return &loop{
		Rand: rand.New(rand.NewPCG(seed, 0x62657274)), begin: time.Now(), arrived: make(chan struct{}, 1), sum: fnv.New64a(), trace: trace,
	}
}

// enter waits for a turn. Key and detail order calls of one step, because the order in which they
// arrive does not depend on the seed. A detail can contain values that differ between two runs of
// one seed in one process, such as dates and ids.
func (l *loop) enter(key string, detail ...string) { l.enterFor(context.Background(), key, detail...) }

// enterFor is enter for a caller that returns without a turn if ctx ends.
func (l *loop) enterFor(ctx context.Context, key string, detail ...string) error {
	l.mu.Lock()
	g := &gate{ctx, l.steps, key, strings.Join(detail, " "), make(chan struct{})}
	l.gates = append(l.gates, g)
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	<-g.open
	return ctx.Err()
}

// run gives turns until the deadline.
func (l *loop) run(until time.Time) {
	for {
		synctest.Wait()
		if l.dismiss() {
			continue
		}
		if g := l.pick(); g != nil {
			l.steps++
			l.note(g.key, g.detail)
			close(g.open)
			synctest.Wait()
			time.Sleep(perStep)
			continue
		}
		left := time.Until(until)
		if left <= 0 {
			return
		}
		end := time.NewTimer(left)
		select {
		case <-l.arrived:
		case <-end.C:
		}
		end.Stop()
	}
}

// dismiss releases goroutines whose context has ended; this is not a step.
func (l *loop) dismiss() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.gates)
	l.gates = slices.DeleteFunc(l.gates, func(g *gate) bool {
		over := g.ctx.Err() != nil
		if over {
			close(g.open)
		}
		return over
	})
	return len(l.gates) < before
}

// pick chooses one of the waiting goroutines, by the seed.
func (l *loop) pick() *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.gates) == 0 {
		return nil
	}
	slices.SortStableFunc(l.gates, func(a, b *gate) int {
		if a.step != b.step {
			return a.step - b.step
		}
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.detail, b.detail))
	})
	i := l.IntN(len(l.gates))
	g := l.gates[i]
	l.gates = slices.Delete(l.gates, i, i+1)
	return g
}

// note adds an entry to the trace. Two runs of one seed must have the same checksum of the trace.
func (l *loop) note(what string, detail string) {
	fmt.Fprintf(l.sum, "%d %d %d %.40s\n", l.steps, time.Since(l.begin), len(what), what)
	if l.trace != nil {
		fmt.Fprintf(l.trace, "%6d %12s %s %s\n", l.steps, l.elapsed(), strings.ReplaceAll(what, "\n", " "), strings.ReplaceAll(detail, "\n", " "))
	}
}

// logf adds an event other than a statement or message to the trace.
func (l *loop) logf(format string, args ...any) { l.note("·", fmt.Sprintf(format, args...)) }

// elapsed returns the simulated time.
func (l *loop) elapsed() time.Duration { return time.Since(l.begin).Round(time.Microsecond) }

// chance returns true with the probability.
func (l *loop) chance(p float64) bool { return p > 0 && l.Float64() < p }

// between returns an unusual duration, so that no two timers end at the same time.
func (l *loop) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(l.Int64N(int64(most-least)))
}

// sleep waits in simulated time, and less when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// realNow returns the time outside of the simulation.
func realNow() time.Time {
	var tv syscall.Timeval
	_ = syscall.Gettimeofday(&tv)
	return time.Unix(tv.Unix())
}

// reseed makes generated IDs depend on the seed.
func reseed(seed uint64) {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	uuid.SetRand(rand.NewChaCha8(key))
}
