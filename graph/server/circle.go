package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"

	"github.com/berthhq/berth/internal/viewer"
)

// Equal subscriptions, with the same viewer, text and variables, form a circle: it reads each
// change once and sends the result to every member. Each member reads its own initial state,
// and the entities that it missed when it fell behind.

// memberQueue is the number of results that can wait for a member before it counts as behind.
const memberQueue = 64

// Stage is the part of a subscription that a run sends.
type Stage int

const (
	Alone   Stage = iota // everything, for one subscription without a circle
	Opening              // the initial state of a member that has joined a circle
	Changes              // the changes, for a circle
	Missed               // entities that may have changed while a member was behind
)

// Turn is the purpose of a run of a subscription.
type Turn struct {
	Stage  Stage
	Join   func() error // Opening: called before the first read, so that the member misses no change
	Opened func()       // Opening: called after the read
	Ready  func()       // Changes: called when no event can be missed any more
}

type turnKey struct{}

// TurnOf returns the purpose of the run of a subscription that ctx belongs to.
func TurnOf(ctx context.Context) Turn {
	p, _ := ctx.Value(turnKey{}).(Turn)
	return p
}

type circleKey [sha256.Size]byte

// keyOf returns a key that is equal for subscriptions with the same results. It includes all
// permissions of the viewer.
func keyOf(ctx context.Context) (circleKey, error) {
	rc := graphql.GetOperationContext(ctx)
	text, err := json.Marshal([]any{viewer.From(ctx), rc.RawQuery, rc.Operation.Name, rc.Variables})
	return sha256.Sum256(text), err
}

// circle runs one subscription for its members.
type circle struct {
	members map[*member]bool // under the lock of streams
	cancel  context.CancelFunc
	ready   chan struct{} // closed when it receives events, or has failed
	failed  *graphql.Response
}

// member is one subscription of a client.
type member struct {
	streams *streams
	ctx     context.Context
	own     graphql.ResponseHandler // results that it reads for itself, before it gets those of the circle
	joined  bool
	queue   chan *graphql.Response // closed when the circle ends
	behind  chan struct{}          // receives when the queue overflowed
}

// share runs a subscription so that equal ones read changes only once.
func (s *streams) share(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	m := &member{streams: s, ctx: ctx, queue: make(chan *graphql.Response, memberQueue), behind: make(chan struct{}, 1)}
	m.own = next(context.WithValue(ctx, turnKey{}, Turn{Stage: Opening, Join: m.join, Opened: func() { m.joined = true }}))
	return m.next
}

// next waits for the next result; nil means the end.
func (m *member) next(ctx context.Context) *graphql.Response {
	for {
		if m.own != nil {
			if resp := m.own(ctx); resp != nil {
				return resp
			}
			m.own = nil
		}
		if !m.joined {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case resp, ok := <-m.queue:
			if !ok {
				return nil
			}
			return resp
		case <-m.behind:
			m.own = m.streams.exec(context.WithValue(m.ctx, turnKey{}, Turn{Stage: Missed}))
		}
	}
}

// join adds m to its circle, and creates the circle if needed.
func (m *member) join() error {
	key, err := keyOf(m.ctx)
	if err != nil {
		return err
	}
	s := m.streams
	s.mu.Lock()
	g := s.circles[key]
	if g == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(m.ctx))
		g = &circle{members: map[*member]bool{}, cancel: cancel, ready: make(chan struct{})}
		s.circles[key] = g
		go s.run(ctx, key, g)
	}
	g.members[m] = true
	s.mu.Unlock()
	context.AfterFunc(m.ctx, func() { s.leave(key, g, m) })
	select {
	case <-m.ctx.Done():
		return m.ctx.Err()
	case <-g.ready:
	}
	if g.failed != nil && len(g.failed.Errors) > 0 {
		return g.failed.Errors
	}
	return nil
}

// leave ends a circle with its last member.
func (s *streams) leave(key circleKey, g *circle, m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(g.members, m)
	if len(g.members) == 0 {
		g.cancel()
		s.forget(key, g)
	}
}

// forget removes a circle from the list unless another one has replaced it.
func (s *streams) forget(key circleKey, g *circle) {
	if s.circles[key] == g {
		delete(s.circles, key)
	}
}

// run sends the results of a circle to its members until the last one leaves.
func (s *streams) run(ctx context.Context, key circleKey, g *circle) {
	heard := false
	answers := s.exec(context.WithValue(ctx, turnKey{}, Turn{Stage: Changes, Ready: func() {
		heard = true
		close(g.ready)
	}}))
	if !heard {
		g.failed = answers(ctx)
		close(g.ready)
	} else {
		for resp := answers(ctx); resp != nil; resp = answers(ctx) {
			resp.Data = bytes.Clone(resp.Data) // the buffer is reused for the next result
			s.hand(g, resp)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.cancel()
	s.forget(key, g)
	for m := range g.members {
		close(m.queue)
	}
	clear(g.members)
}

// hand queues a result for every member; a slow member does not delay the others.
func (s *streams) hand(g *circle, resp *graphql.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range g.members {
		select {
		case m.queue <- resp:
		default:
			m.fallBehind()
		}
	}
}

// fallBehind empties the queue, since the member will read the current state of the entities
// instead.
func (m *member) fallBehind() {
	for len(m.queue) > 0 {
		select {
		case <-m.queue:
		default:
		}
	}
	select {
	case m.behind <- struct{}{}:
	default:
	}
}

// exec runs the operation of ctx again, as the executor does for clients.
func (s *streams) exec(ctx context.Context) graphql.ResponseHandler {
	first := graphql.WithResponseContext(ctx, s.presenter, s.recover)
	answers := s.schema.Exec(first)
	if errs := graphql.GetErrors(first); errs != nil {
		return graphql.OneShot(&graphql.Response{Errors: errs})
	}
	return func(context.Context) *graphql.Response {
		if ctx.Err() != nil {
			return nil
		}
		ctx := graphql.WithResponseContext(s.fresh(ctx), s.presenter, s.recover)
		resp := answers(ctx)
		if resp == nil {
			return nil
		}
		resp.Errors = append(resp.Errors, graphql.GetErrors(ctx)...)
		resp.Extensions = graphql.GetExtensions(ctx)
		return resp
	}
}
