package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/core"
	"github.com/berthhq/berth/manager/group"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/policy"
)

// process is one run of a manager's process. Its memory is lost when it dies.
type process struct {
	w       *world
	index   int
	name    string
	dead    bool
	leading bool

	ctx    context.Context
	cancel context.CancelFunc
	bus    *event.Bus
	echoes map[echo]int // events of other managers that this bus is delivering

	*core.Core
	groups *group.Service

	desk chan struct{} // serializes requests of users
}

// echo is an event of another manager that this manager's bus delivers again.
type echo struct {
	topic event.Topic
	id    uuid.UUID
}

// noSamples replaces Redis, and has no samples.
type noSamples struct{}

func (noSamples) Record(context.Context, uuid.UUID, *agentpb.StatsReport) {}

func (noSamples) Latest(context.Context, []uuid.UUID) (map[uuid.UUID]report.Stats, error) {
	return nil, nil
}

// startManager starts a manager's process, with the same wiring as the real one.
func (w *world) startManager(index int) *process {
	p := &process{w: w, index: index, name: "m" + string(rune('0'+index)), desk: make(chan struct{}, 1), echoes: map[echo]int{}}
	p.ctx, p.cancel = context.WithCancel(w.ctx)
	client := ent.NewClient(ent.Driver(&statements{entsql.OpenDB(dialect.Postgres, w.place.db), p}))
	log := w.log.With("manager", p.name)
	p.bus = event.New(nil, log)
	p.Core = core.New(core.Config{
		Client: client, Bus: p.bus, Policies: policy.New(policy.Config{Client: client, Bus: p.bus}), Samples: noSamples{},
		Managers: func() []string { return nil }, Logger: log,
	})
	p.groups = group.New(group.Config{Client: client, Bus: p.bus})
	w.managers[index] = p
	w.play(p.relay)
	for _, m := range w.machines {
		w.play(func() { m.dial(p) })
	}
	return p
}

// die ends the process at any point of its work. Another process starts later.
func (p *process) die() {
	if p.dead {
		return
	}
	p.w.logf("%s dies", p.name)
	p.dead = true
	p.cancel()
	p.w.election.died(p)
	w := p.w
	down := w.between(500*time.Millisecond, 20*time.Second)
	w.play(func() {
		if sleep(w.ctx, down) == nil {
			w.enter(p.name + " returns")
			if !w.over {
				w.startManager(p.index)
			}
		}
	})
}

// relay sends events of this manager to the others, as Redis would.
func (p *process) relay() {
	w := p.w
	for e := range p.bus.Subscribe(p.ctx, event.Session, event.Pending) {
		if len(w.managers) < 2 {
			continue
		}
		w.enter(p.name+" event "+string(e.Topic), e.ID.String())
		if key := (echo{e.Topic, e.ID}); p.echoes[key] > 0 {
			p.echoes[key]--
			continue
		}
		for i := range w.managers {
			if i != p.index {
				w.carry(e, i)
			}
		}
	}
}

func (w *world) carry(e event.Event, to int) {
	times := 1
	delay := w.between(100*time.Microsecond, 5*time.Millisecond)
	if !w.calm && w.chance(w.mood.event) {
		times = w.IntN(3)
		delay = w.between(0, 4*time.Second)
	}
	for range times {
		w.play(func() {
			if sleep(w.ctx, delay) != nil {
				return
			}
			w.enter("event for m"+string(rune('0'+to))+string(e.Topic), e.ID.String())
			if p := w.managers[to]; !p.dead {
				p.echoes[echo{e.Topic, e.ID}]++
				p.bus.Publish(p.ctx, e)
			}
		})
	}
}

type termKey struct{}

// term is the leadership of one manager, from its own point of view.
type term struct {
	p        *process
	revision int64
	epoch    int64 // 0 before the fence is raised
	cancel   context.CancelFunc
}

// lead does the same as manager.lead.
func (p *process) lead(ctx context.Context, t *term) {
	ctx = viewer.SystemContext(context.WithValue(ctx, termKey{}, t))
	epoch, err := leader.RaiseFence(ctx, p.client(), t.revision, func(context.Context) error { return p.w.election.confirm(t) })
	p.w.enter(p.name + " has raised the fence")
	if err != nil {
		p.w.logf("%s does not lead: %v", p.name, err)
		return
	}
	t.epoch = epoch
	p.w.logf("%s leads in epoch %d", p.name, t.epoch)
	var loops sync.WaitGroup
	loops.Go(func() { p.Agents.Lead(ctx, t.epoch, p.Sessions) })
	loops.Go(func() { p.Sessions.Lead(ctx, t.epoch) })
	loops.Go(func() { p.Scheduler.Lead(ctx, t.epoch) })
	loops.Go(func() { p.Occupancy.Lead(ctx, t.epoch) })
	loops.Wait()
}

func (p *process) client() *ent.Client { return p.Sessions.Client }

// election simulates etcd: one manager has the lease, each new one with a higher revision, until
// etcd loses its data. A manager that has lost the lease may notice this only later.
type election struct {
	w        *world
	revision int64
	leader   *term // holds the lease

	changed time.Time // when someone else began or ended to lead
}

// forgets is the probability that etcd is replaced by an empty one before an election.
const forgets = 0.1

// confirm returns nil if t holds the lease.
func (e *election) confirm(t *term) error {
	if e.leader != t {
		return fmt.Errorf("the election of revision %d was lost: %w", t.revision, errdefs.ErrAborted)
	}
	return nil
}

// run gives the lease to a manager whenever no manager holds it.
func (e *election) run() {
	w := e.w
	for sleep(w.ctx, w.tick()) == nil {
		w.enter("election")
		if e.leader != nil || w.over {
			continue
		}
		var able []*process
		for _, p := range w.managers {
			if !p.dead && !p.leading { // a former leader is a candidate again
				able = append(able, p)
			}
		}
		if len(able) == 0 {
			continue
		}
		e.elect(able[w.IntN(len(able))])
	}
}

// tick is not random, because its caller has no turn.
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

// died makes the lease of a dead manager expire.
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

// depose takes the lease away. The manager continues to lead for a while.
func (e *election) depose() {
	t := e.leader
	if t == nil {
		return
	}
	w := e.w
	e.leader = nil
	blind := w.between(0, 15*time.Second)
	w.logf("%s loses its lease and notices after %s", t.p.name, blind.Round(time.Millisecond))
	w.play(func() {
		if sleep(w.ctx, blind) == nil {
			w.enter(t.p.name + " notices that it does not lead")
			t.cancel()
		}
	})
}
