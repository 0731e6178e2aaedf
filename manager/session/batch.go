package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/viewer"
)

// coalescer is a resolver that resolves concurrent requests with equal references once,
// as docs/adr/0030-requests-are-stored-together.md explains. No request gets a result
// whose lookup began before the request came, so the result is as new as without it.
type coalescer struct {
	next   resolver
	gather func(ctx context.Context) // waits for more requests while a batch is stored anyway

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

// errPanicked is the error of a call for several requests that panicked. Each of the requests then
// makes a call of its own.
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

const (
	// maxBatch limits the sessions that are stored in one transaction.
	maxBatch = 64
	// maxBatches limits the concurrent transactions: while one waits for the disk, the other uses
	// the processor.
	maxBatches = 2
	// gatherFor limits how long a request waits for the end of these transactions before it is
	// resolved. Its own transaction would wait for them in any case, and requests with equal
	// references are resolved together. A batch of 30 takes some 5 ms.
	gatherFor = 5 * time.Millisecond
)

// batchingStore is a storer that stores concurrent requests in one transaction, as
// docs/adr/0030-requests-are-stored-together.md explains. If a batch fails, each of its sessions is
// stored alone, so that no request fails because of another.
type batchingStore struct {
	next storer

	mu      sync.Mutex
	running int
	open    *batch        // that still accepts specs
	waiting []*batch      // for the end of a running batch
	idle    chan struct{} // closed when none runs; nil: nothing waits for that
}

// batch is a list of specs and, after done is closed, their sessions.
type batch struct {
	specs    []*sessionSpec
	sessions []*ent.Session
	err      error
	turn     chan struct{} // closed when it is the first request's turn to store the batch
	done     chan struct{}
}

// store stores a lone spec together with those of concurrent requests, unless it has to
// be counted or locks rows of its own.
func (q *batchingStore) store(ctx context.Context, specs []*sessionSpec) ([]*ent.Session, error) {
	if len(specs) != 1 || !specs[0].plain() {
		return q.next.store(ctx, specs)
	}
	b, i := q.join(specs[0])
	if i == 0 {
		q.lead(ctx, b)
	}
	<-b.done
	switch {
	case b.err == nil:
		return b.sessions[i : i+1], nil
	case len(b.specs) > 1:
		return q.next.store(ctx, specs)
	}
	return nil, b.err
}

// plain reports whether a spec locks nothing but the owner's membership.
func (spec *sessionSpec) plain() bool {
	return len(spec.mounts)+len(spec.needed)+len(spec.agents) == 0 && spec.together == nil && spec.restarts == nil && spec.member == nil && len(spec.budgets) == 0 && len(spec.locks()) == 0 && !spec.refused()
}

// join adds a spec to a batch and returns its index.
func (q *batchingStore) join(spec *sessionSpec) (b *batch, i int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b = q.open; b != nil && len(b.specs) < maxBatch {
		b.specs = append(b.specs, spec)
		return b, len(b.specs) - 1
	}
	b = &batch{specs: []*sessionSpec{spec}, turn: make(chan struct{}), done: make(chan struct{})}
	q.open = b
	if q.running < maxBatches {
		q.running++
		close(b.turn)
	} else {
		q.waiting = append(q.waiting, b)
	}
	return b, 0
}

// lead stores a batch when its turn has come.
func (q *batchingStore) lead(ctx context.Context, b *batch) {
	defer close(b.done)
	<-b.turn
	defer q.leave()
	runtime.Gosched() // lets requests join that are about to: a batch of one costs as much as a batch of ten
	q.seal(b)
	if len(b.specs) > 1 {
		ctx = context.WithoutCancel(ctx) // the batch continues if the first request is cancelled
	}
	b.err = errPanicked
	b.sessions, b.err = q.next.store(ctx, b.specs)
}

// seal makes a batch accept no more specs.
func (q *batchingStore) seal(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == b {
		q.open = nil
	}
}

// leave allows the next batch to run.
func (q *batchingStore) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running--
		if q.running == 0 && q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
		return
	}
	close(q.waiting[0].turn)
	q.waiting = q.waiting[1:]
}

// gather waits, at most gatherFor, until no batch runs, and gives requests that are about to join
// the time to do so.
func (q *batchingStore) gather(ctx context.Context) {
	q.mu.Lock()
	if q.running > 0 {
		if q.idle == nil {
			q.idle = make(chan struct{})
		}
		idle := q.idle
		q.mu.Unlock()
		wait := time.NewTimer(gatherFor)
		defer wait.Stop()
		select {
		case <-ctx.Done():
		case <-wait.C:
		case <-idle:
		}
	} else {
		q.mu.Unlock()
	}
	runtime.Gosched()
}
