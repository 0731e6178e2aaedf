package graph

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/graph/server"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
)

// feed describes a subscription to one kind of entity.
type feed[T any] struct {
	topic event.Topic
	id    *uuid.UUID // if set, only this one
	// first returns the initial state that the subscription sends.
	first func(context.Context) ([]T, error)
	// read returns those of the entities that the viewer can see.
	read func(context.Context, []uuid.UUID) ([]T, error)
	// missed returns the entities that may have changed while events were lost; nil means
	// first.
	missed func(context.Context) ([]T, error)
	// every is the minimum time between two reads; 0 means settle for one entity and
	// settleList for all.
	every time.Duration
}

const (
	// settle limits how often a subscription sends. A change is sent at once; changes within
	// this time after it are sent together, each entity in its state at that time.
	settle     = 20 * time.Millisecond
	settleList = 100 * time.Millisecond
	// quick is the number of reads within a second for which a subscription to all uses the
	// interval of one entity, so that the changes of one starting session are not delayed.
	quick = 20
	// again is the time before a failed read is retried.
	again = time.Second
)

const (
	// maxFeed limits the result of one read of a subscription.
	maxFeed = 500
	// missedFor is how far back the end of an entity counts as possibly missed.
	missedFor = 10 * time.Minute
)

// named reads the one entity of a subscription.
func named[T, P any](ctx context.Context, find func(context.Context, ...P) ([]T, error), what string, id P) ([]T, error) {
	list, err := find(ctx, id)
	if err == nil && len(list) == 0 {
		return nil, problem.NotFound(what).WithField("id")
	}
	return list, err
}

// follow sends the result of first, and then every entity that an event names, as the viewer
// can see it at that time. After lost events, it sends the entities that may have changed, so
// that no client keeps an outdated state. It sends only the fields that ctx selects.
func follow[T any](ctx context.Context, r *Resolver, f feed[T]) (<-chan T, error) {
	if f.missed == nil {
		f.missed = f.first
	}
	w := &follower[T]{feed: f, resolver: r, out: make(chan T), dirty: map[uuid.UUID]bool{}}
	p := server.TurnOf(ctx)
	var events <-chan event.Event
	switch p.Stage {
	case server.Alone, server.Changes:
		events = r.Bus.Subscribe(ctx, f.topic)
	case server.Opening:
		if err := p.Join(); err != nil {
			return nil, err
		}
	case server.Missed:
		w.lagged = true
	}
	var begin []T
	if p.Stage == server.Alone || p.Stage == server.Opening {
		var err error
		if begin, err = f.first(ctx); err != nil {
			return nil, err
		}
	}
	switch p.Stage {
	case server.Opening:
		p.Opened()
	case server.Changes:
		p.Ready()
	}
	go func() {
		defer close(w.out)
		switch {
		case p.Stage == server.Missed:
			w.catchUp(ctx)
		case w.send(ctx, begin) && events != nil:
			w.run(ctx, events)
		}
	}()
	return w.out, nil
}

// follower is one running subscription.
type follower[T any] struct {
	feed[T]
	resolver *Resolver
	out      chan T
	dirty    map[uuid.UUID]bool // changed, not sent yet
	lagged   bool
	flush    <-chan time.Time
	sent     time.Time
	reads    int // in the current second
	counted  time.Time
}

func (w *follower[T]) run(ctx context.Context, events <-chan event.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			w.note(e)
		case <-w.flush:
			w.flush, w.sent = nil, time.Now()
			if w.reads++; w.sent.Sub(w.counted) > time.Second {
				w.reads, w.counted = 1, w.sent
			}
			list, err := w.changes(fresh(ctx, w.resolver))
			if err != nil {
				w.failed(ctx, err)
				w.flush = time.After(again)
				continue
			}
			clear(w.dirty)
			w.lagged = false
			if !w.send(ctx, list) {
				return
			}
		}
	}
}

// catchUp sends the entities that may have changed, and retries until it succeeds.
func (w *follower[T]) catchUp(ctx context.Context) {
	for ctx.Err() == nil {
		list, err := w.changes(fresh(ctx, w.resolver))
		if err == nil {
			w.send(ctx, list)
			return
		}
		w.failed(ctx, err)
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (w *follower[T]) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.resolver.Logger.Warn("read for a subscription", "topic", w.topic, "error", err)
	}
}

func (w *follower[T]) note(e event.Event) {
	switch {
	case e.Topic == event.Lagged:
		w.lagged = true
	case w.id != nil && *w.id != e.ID:
		return
	default:
		w.dirty[e.ID] = true
	}
	if w.flush == nil {
		w.flush = time.After(time.Until(w.sent.Add(w.pace())))
	}
}

func (w *follower[T]) pace() time.Duration {
	switch {
	case w.every != 0:
		return w.every
	case w.id != nil || w.reads <= quick:
		return settle
	}
	return settleList
}

func (w *follower[T]) changes(ctx context.Context) ([]T, error) {
	var list []T
	if w.lagged {
		missed, err := w.missed(ctx)
		if err != nil && !errdefs.IsNotFound(err) { // the one entity is no longer visible
			return nil, err
		}
		list = missed
	}
	if len(w.dirty) == 0 {
		return list, nil
	}
	changed, err := w.read(ctx, slices.Collect(maps.Keys(w.dirty)))
	return append(list, changed...), err
}

func (w *follower[T]) send(ctx context.Context, list []T) bool {
	for _, v := range list {
		select {
		case <-ctx.Done():
			return false
		case w.out <- v:
		}
	}
	return true
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

func now() time.Time { return time.Now().UTC() }
