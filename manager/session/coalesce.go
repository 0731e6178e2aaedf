package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/berthhq/berth/internal/viewer"
)

// coalescer is a resolver that resolves concurrent requests with equal references once,
// as docs/adr/0030-requests-are-stored-together.md explains. No request gets a result
// whose lookup began before the request came, so the result is as new as without it.
type coalescer struct {
	next   resolver
	gather func(ctx context.Context) // waits for more requests while nothing is lost by that

	mu    sync.Mutex
	calls map[string]*call // the running one for each key
}

// call is one lookup, and the one after it, for requests that come while it runs.
type call struct {
	begun bool // a request that comes now needs a later lookup
	done  chan struct{}
	value *resolved
	err   error
	next  *call
}

// errPanicked is the error of a call for several requests unless it returns. Each of them
// then makes a call of its own.
var errPanicked = errors.New("panic in a call for several requests")

func newCoalescer(next resolver, gather func(ctx context.Context)) *coalescer {
	return &coalescer{next: next, gather: gather, calls: map[string]*call{}}
}

func (c *coalescer) resolve(ctx context.Context, v *viewer.Viewer, in CreateSessionInput) (*resolved, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("compare requests: %w", err)
	}
	key := fmt.Sprintf("%+v %s", *v, text)
	mine, other := c.join(key)
	if mine == nil {
		return c.wait(ctx, other, v, in)
	}
	if other != nil {
		<-other.done
	}
	c.gather(ctx)
	c.mu.Lock()
	mine.begun = true
	c.mu.Unlock()
	mine.err = errPanicked
	defer c.finish(key, mine)
	mine.value, mine.err = c.next.resolve(ctx, v, in)
	return mine.value, mine.err
}

// finish gives the result of a call to the requests that wait for it.
func (c *coalescer) finish(key string, mine *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] = mine.next; mine.next == nil {
		delete(c.calls, key)
	}
	close(mine.done)
}

// join returns the call that the caller has to make, and the one that has to end before;
// or nil and the call of another request, to wait for.
func (c *coalescer) join(key string) (mine, other *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := c.calls[key]
	switch {
	case running == nil:
		mine = &call{done: make(chan struct{})}
		c.calls[key] = mine
	case !running.begun:
		return nil, running
	case running.next == nil:
		mine = &call{done: make(chan struct{})}
		running.next = mine
	default:
		return nil, running.next
	}
	return mine, running
}

// wait returns the result of another request's call. If that fails, perhaps because its
// request was cancelled, the caller makes one of its own.
func (c *coalescer) wait(ctx context.Context, other *call, v *viewer.Viewer, in CreateSessionInput) (*resolved, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-other.done:
	}
	if other.err != nil {
		return c.next.resolve(ctx, v, in)
	}
	return other.value, nil
}
