package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/berthhq/berth/internal/viewer"
)

// shared lets callers who ask the same at the same time have one answer. It is
// found after all of them have asked, so it is as new for each as their own would
// be.
type shared[T any] struct {
	gather func(ctx context.Context) // waits while there is no hurry, so that more callers join

	mu   sync.Mutex
	asks map[string]*ask[T]
}

// ask is an answer that is being found, and the one after it, for those who come
// meanwhile.
type ask[T any] struct {
	begun bool // who comes now needs a later answer
	done  chan struct{}
	value T
	err   error
	next  *ask[T]
}

// get returns what find finds. If the caller who finds it is called off, the
// others find it themselves.
func (s *shared[T]) get(ctx context.Context, key string, find func() (T, error)) (T, error) {
	s.mu.Lock()
	if s.asks == nil {
		s.asks = map[string]*ask[T]{}
	}
	mine := &ask[T]{done: make(chan struct{})}
	switch running := s.asks[key]; {
	case running == nil:
		s.asks[key] = mine
		s.mu.Unlock()
	case !running.begun:
		s.mu.Unlock()
		return running.wait(ctx, find)
	case running.next == nil: // the first caller finds the next
		running.next = mine
		s.mu.Unlock()
		<-running.done
	default:
		s.mu.Unlock()
		return running.next.wait(ctx, find)
	}
	s.gather(ctx)
	s.mu.Lock()
	mine.begun = true
	s.mu.Unlock()
	mine.value, mine.err = find()
	s.mu.Lock()
	if s.asks[key] = mine.next; mine.next == nil {
		delete(s.asks, key)
	}
	s.mu.Unlock()
	close(mine.done)
	return mine.value, mine.err
}

// wait returns the answer that another caller finds.
func (a *ask[T]) wait(ctx context.Context, find func() (T, error)) (T, error) {
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case <-a.done:
	}
	if a.err != nil {
		return find()
	}
	return a.value, nil
}

// checkShared does what of the checks reads rows that are the same for requests
// that are alike.
func (s *Service) checkShared(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, w *wish) error {
	key := fmt.Sprintf("%+v|%s|%s|%s|%q|%v|%s|%s", *v, text(in.Project), text(in.ResourceGroup), w.kind, in.Image, in.Slots, text(in.Kernels), text(in.AutoMount))
	found, err := s.checks.get(ctx, key, func() (*wish, error) {
		one := *w
		for _, do := range []inspection{s.checkPlace, s.checkImage, s.checkSlots, s.checkAutoMounts, s.checkPolicies} {
			if err := do(ctx, v, in, &one); err != nil {
				return nil, err
			}
		}
		return &one, nil
	})
	if err != nil {
		return err
	}
	w.project, w.domain, w.member, w.keypair = found.project, found.domain, found.member, found.keypair
	w.groups, w.group, w.image, w.limits = found.groups, found.group, found.image, found.limits
	w.kernels, w.slots, w.mounts = found.kernels, found.slots, found.mounts
	return nil
}

// plain reports whether a request names nothing that it alone is about.
func plain(in CreateSessionInput) bool {
	return len(in.Mounts)+len(in.DependsOn)+len(in.Agents) == 0 && in.SessionGroup == nil
}

// text is what a pointer points to, for a key.
func text[T any](p *T) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprint(*p)
}
