package sim

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// result is what became of a seed.
type result struct {
	Seed      uint64
	Broken    []string
	Sum       uint64 // of the trace
	Steps     int
	Simulated time.Duration
	Asked     int // for sessions
}

const (
	day = 24 * time.Hour
	// timeout is how long everything may take to settle when nothing goes
	// wrong any more: the deadline of an end, and its minute.
	timeout = 4 * time.Minute
)

// run plays one seed. It begins at midnight, and with nothing in the database.
func run(t *testing.T, at *place, seed uint64, trace io.Writer) result {
	time.Sleep(time.Until(time.Now().Truncate(day).Add(day)))
	reseed(seed)
	at.clean(t)
	w := newWorld(seed, at, trace)
	w.story()
	w.end()
	return result{seed, w.broken, w.sum.Sum64(), w.steps, time.Since(w.begin), len(w.people.asked)}
}

// story is what happens in a world, from its making to its end.
func (w *world) story() {
	w.managers = make([]*process, 1+w.IntN(2))
	for i := range 1 + w.IntN(3) {
		w.machines = append(w.machines, w.build("agent-"+string(rune('a'+i))))
	}
	w.election = &election{w: w}
	for i := range w.managers {
		w.startManager(i)
	}
	w.play(w.election.run)
	w.people = &people{w: w}
	until := time.Now().Add(w.between(30*time.Second, 90*time.Second))
	for _, v := range append(w.place.people, w.place.admin) {
		if w.chance(0.7) {
			w.play(func() { w.people.run(v, until) })
		}
	}
	w.play(func() { w.trouble(until) })
	if w.steady(until) {
		return
	}
	w.heal()
	if w.steady(time.Now().Add(longest)) || w.until(w.settled) {
		return
	}
	idle := w.idle()
	if w.steady(time.Now().Add(7 * time.Second)) {
		return
	}
	w.starved(idle, w.idle())
	w.stuck()
	w.kept()
	w.people.endAll()
	if w.until(w.ended) {
		return
	}
	w.empty()
	w.kept()
}

// until continues until something is so, or for as long as that may take, and
// reports whether something is broken.
func (w *world) until(so func() bool) bool {
	for limit := time.Now().Add(timeout); time.Now().Before(limit); {
		if w.steady(time.Now().Add(7 * time.Second)) {
			return true
		}
		if so() {
			return false
		}
	}
	return false
}

// steady continues until then, and reports whether something is broken.
func (w *world) steady(until time.Time) bool {
	for time.Now().Before(until) && len(w.broken) == 0 {
		w.loop.run(earlier(until, time.Now().Add(time.Second)))
		w.onMachines()
		w.twice()
	}
	return len(w.broken) > 0
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// end stops everyone and waits for the last.
func (w *world) end() {
	w.over, w.calm = true, true
	for _, p := range w.managers {
		p.dead = true
	}
	w.cancel()
	done := make(chan struct{})
	go func() { w.live.Wait(); close(done) }()
	for {
		w.loop.run(time.Now().Add(10 * time.Second))
		synctest.Wait()
		select {
		case <-done:
			w.loop.run(time.Now().Add(time.Minute)) // timers that no one waits for
			return
		default:
		}
	}
}
