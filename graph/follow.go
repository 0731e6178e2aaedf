package graph

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
)

// feed describes a subscription to one kind of entity.
type feed[T any] struct {
	topic event.Topic
	id    *uuid.UUID // only this one
	first func(context.Context) ([]T, error)
	read  func(context.Context, uuid.UUID) (T, error)
}

// settle bounds how often a subscription sends: a change is sent at once, those
// that follow within this time are sent together, each entity as it is then.
const settle = 100 * time.Millisecond

// follow sends what first returns and then every entity that an event names,
// read anew under the viewer's rules. What is out of sight is not sent. After
// a lag, first is sent again, so that nobody keeps an old state.
func follow[T any](ctx context.Context, r *Resolver, f feed[T]) (<-chan T, error) {
	events := r.Bus.Subscribe(ctx, f.topic)
	begin, err := f.first(ctx)
	if err != nil {
		return nil, err
	}
	out := make(chan T)
	send := func(list []T) bool {
		for _, v := range list {
			select {
			case <-ctx.Done():
				return false
			case out <- v:
			}
		}
		return true
	}
	go func() {
		defer close(out)
		if !send(begin) {
			return
		}
		dirty := map[uuid.UUID]bool{}
		var flush <-chan time.Time
		var sent time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-events:
				if !ok {
					return
				}
				if e.Topic == event.Lagged {
					if again, err := f.first(fresh(ctx, r)); err == nil && !send(again) {
						return
					}
					continue
				}
				if f.id != nil && *f.id != e.ID {
					continue
				}
				dirty[e.ID] = true
				if flush == nil {
					flush = time.After(time.Until(sent.Add(settle)))
				}
			case <-flush:
				flush, sent = nil, time.Now()
				for id := range dirty {
					v, err := f.read(fresh(ctx, r), id)
					if err != nil && !ent.IsNotFound(err) {
						r.Logger.Warn("read for a subscription", "topic", f.topic, "id", id, "error", err)
					}
					if err == nil && !send([]T{v}) {
						return
					}
				}
				clear(dirty)
			}
		}
	}()
	return out, nil
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
