package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
)

// election plays etcd: one manager holds the lease, each with a higher revision
// than the one before, until etcd loses its data. Who loses the lease may not know for
// a while.
type election struct {
	w        *world
	revision int64
	leader   *term // holds the lease

	changed time.Time // when someone else began or ended to lead
}

// forgets is the chance that etcd was lost and replaced before an election.
const forgets = 0.1

// confirm returns nil if t holds the lease.
func (e *election) confirm(t *term) error {
	if e.leader != t {
		return fmt.Errorf("the election of revision %d was lost: %w", t.revision, errdefs.ErrAborted)
	}
	return nil
}

// run gives the lease to someone whenever no one holds it.
func (e *election) run() {
	w := e.w
	for sleep(w.ctx, w.tick()) == nil {
		w.enter("election")
		if e.leader != nil || w.over {
			continue
		}
		var able []*process
		for _, p := range w.managers {
			if !p.dead && !p.leading { // it stands again when its term is over
				able = append(able, p)
			}
		}
		if len(able) == 0 {
			continue
		}
		e.elect(able[w.IntN(len(able))])
	}
}

// tick is not drawn: anyone who asks has no turn.
func (w *world) tick() time.Duration { return 1013 * time.Millisecond }

func (e *election) elect(p *process) {
	w := e.w
	if !w.calm && w.chance(forgets) {
		w.logf("etcd loses its data")
		e.revision = 0
	}
	e.revision += 1 + w.Int64N(3)
	ctx, cancel := context.WithCancel(p.ctx)
	t := &term{p: p, revision: e.revision, cancel: cancel}
	e.leader, p.leading, e.changed = t, true, time.Now()
	w.logf("%s is elected at revision %d", p.name, t.revision)
	w.play(func() {
		p.lead(ctx, t)
		cancel()
		w.enter(p.name + " has led")
		p.leading, e.changed = false, time.Now()
		if e.leader == t && !p.dead {
			e.leader = nil
		}
	})
}

// died lets the lease of a dead manager run out.
func (e *election) died(p *process) {
	if t := e.leader; t != nil && t.p == p {
		e.expire(t, e.w.between(time.Second, 10*time.Second))
	}
}

func (e *election) expire(t *term, after time.Duration) {
	w := e.w
	w.play(func() {
		if sleep(w.ctx, after) == nil {
			w.enter("lease of " + t.p.name + " runs out")
			if e.leader == t {
				e.leader = nil
			}
		}
	})
}

// depose takes the lease away; the manager continues leading for a while.
func (e *election) depose() {
	t := e.leader
	if t == nil {
		return
	}
	w := e.w
	e.leader = nil
	blind := w.between(0, 15*time.Second)
	w.logf("%s loses its lease and knows in %s", t.p.name, blind.Round(time.Millisecond))
	w.play(func() {
		if sleep(w.ctx, blind) == nil {
			w.enter(t.p.name + " knows that it does not lead")
			t.cancel()
		}
	})
}
