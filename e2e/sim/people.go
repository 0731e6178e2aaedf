package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/session"
)

// people create and end sessions, and record the answers.
type people struct {
	w      *world
	asked  []*asked
	number int
}

// asked is one request for a session.
type asked struct {
	who     *viewer.Viewer
	in      session.CreateSessionInput
	id      uuid.UUID // uuid.Nil until it is known
	refused bool
	ended   bool // its end was requested and confirmed
}

// run sends requests of a user at random times until the story ends.
func (ps *people) run(v *viewer.Viewer, until time.Time) {
	w := ps.w
	w.enter("somebody comes")
	for {
		wait := w.between(500*time.Millisecond, 16*time.Second)
		if sleep(w.ctx, wait) != nil {
			return
		}
		w.enter("somebody thinks")
		if time.Now().After(until) || w.over {
			return
		}
		p := w.managers[w.IntN(len(w.managers))]
		if p.dead {
			continue
		}
		if w.chance(0.65) || len(ps.asked) == 0 {
			ps.create(p, ps.draw(v))
		} else if a := ps.asked[w.IntN(len(ps.asked))]; a.who == v && a.id != uuid.Nil {
			ps.terminate(p, a, w.chance(0.2))
		}
	}
}

// at sends a request to the manager as a user. The manager handles one at a time.
func (p *process) at(v *viewer.Viewer, f func(ctx context.Context) error) error {
	select {
	case p.desk <- struct{}{}:
	case <-p.ctx.Done():
		return errGone
	}
	defer func() { <-p.desk }()
	return f(viewer.With(p.ctx, v))
}

// unknown reports whether an error leaves open whether the request took effect.
func unknown(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, errLost) || errors.Is(err, context.Canceled)
}

func (ps *people) create(p *process, a *asked) {
	if a == nil {
		return
	}
	w := ps.w
	var got *session.SessionPayload
	err := p.at(a.who, func(ctx context.Context) (err error) {
		got, err = p.Sessions.CreateSession(ctx, a.in)
		return err
	})
	w.enter("answer for " + *a.in.Name)
	switch {
	case err == nil && a.id != uuid.Nil && a.id != got.Session.ID:
		w.fail("I6", "%s was created twice for one idempotency key", *a.in.Name)
	case err == nil:
		a.id = got.Session.ID
	case unknown(err):
		// The request can be repeated safely: it returns the session of the first one.
		if a.in.IdempotencyKey != nil && !w.over {
			if other := w.managers[w.IntN(len(w.managers))]; !other.dead {
				ps.create(other, a)
			}
		}
	default:
		a.refused = true
		w.logf("%s is refused: %v", *a.in.Name, err)
	}
}

func (ps *people) terminate(p *process, a *asked, force bool) {
	err := p.at(a.who, func(ctx context.Context) error {
		_, err := p.Sessions.TerminateSession(ctx, session.TerminateSessionInput{ID: a.id, Force: &force})
		return err
	})
	ps.w.enter("answer to the end of " + *a.in.Name)
	switch {
	case err == nil:
		a.ended = true
	case !unknown(err):
		ps.w.logf("end of %s is refused: %v", *a.in.Name, err)
	}
}

// draw returns a random request.
func (ps *people) draw(v *viewer.Viewer) *asked {
	w := ps.w
	ps.number++
	name := fmt.Sprintf("s%02d", ps.number)
	a := &asked{who: v, in: session.CreateSessionInput{Name: &name, Image: images[w.IntN(2)]}}
	ps.asked = append(ps.asked, a)
	if w.chance(0.06) {
		a.in.Image = goneImage
	}
	a.in.Slots = resource.Slots{resource.CPU: 250 * (1 + w.Int64N(12)), resource.Mem: 1 << 28 * (1 + w.Int64N(16))}
	if w.chance(0.25) {
		kernels := 2 + w.IntN(2)
		a.in.Kernels = &kernels
	}
	if w.chance(0.3) {
		yields := true
		a.in.Preemptible = &yields
	}
	if v == w.place.admin {
		a.in.Project = &w.place.project
	}
	if w.chance(0.5) && w.accelerated() {
		a.in.Slots["mock.shares"] = []int64{250, 500, 1000, 2000}[w.IntN(4)]
	}
	if w.chance(0.7) {
		code := 0
		if w.chance(0.25) {
			code = 1
		}
		ms := int(w.between(100*time.Millisecond, 40*time.Second).Milliseconds())
		a.in.Command = []string{"work", strconv.Itoa(ms), strconv.Itoa(code)}
		if w.chance(0.1) {
			at := time.Now().Add(w.between(time.Second, 40*time.Second))
			a.in.StartsAt = &at
		}
	}
	if w.chance(0.3) {
		priority := w.IntN(100)
		a.in.Priority = &priority
	}
	if w.chance(0.3) {
		a.in.IdempotencyKey = &name
	}
	if w.chance(0.15) {
		for _, other := range ps.asked {
			if other.who == v && other.id != uuid.Nil && len(a.in.DependsOn) < 2 && w.chance(0.5) {
				a.in.DependsOn = append(a.in.DependsOn, other.id)
			}
		}
	}
	if w.chance(0.15) {
		ps.choose(a)
	}
	return a
}

func (w *world) accelerated() bool {
	for _, m := range w.machines {
		if len(m.capacity) > 2 {
			return true
		}
	}
	return false
}

// choose requests an agent by name. Only an admin can require one.
func (ps *people) choose(a *asked) {
	w := ps.w
	m := w.machines[w.IntN(len(w.machines))]
	found, err := w.plain.Agent.Query().Where(agent.Name(m.name)).Only(w.ctx)
	if ent.IsNotFound(err) {
		return
	}
	if err != nil {
		panic(err)
	}
	a.in.Agents = []uuid.UUID{found.ID}
	if a.who == w.place.admin {
		strict := true
		a.in.StrictAgents = &strict
	}
}

// endAll requests the end of all sessions.
func (ps *people) endAll() {
	w := ps.w
	live, err := w.plain.Session.Query().Where(entsession.TerminatedAtIsNil()).Order(entsession.ByID()).All(w.ctx)
	if err != nil {
		panic(err)
	}
	for _, s := range live {
		w.play(func() {
			w.enter("the end of " + s.Name)
			p := w.someManager()
			for p == nil { // wait until a manager runs
				if sleep(w.ctx, time.Second) != nil {
					return
				}
				w.enter("the end of " + s.Name)
				p = w.someManager()
			}
			err := p.at(w.place.admin, func(ctx context.Context) error {
				_, err := p.Sessions.TerminateSession(ctx, session.TerminateSessionInput{ID: s.ID})
				return err
			})
			if err != nil {
				w.enter("no end of " + s.Name)
				w.fail("I3", "session %s cannot be ended: %v", s.Name, err)
			}
		})
	}
}

// someManager returns a live manager, or nil.
func (w *world) someManager() *process {
	for _, p := range w.managers {
		if !p.dead {
			return p
		}
	}
	return nil
}
