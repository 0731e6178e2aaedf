package graph

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
)

const (
	// maxAtOnce bounds the queries and mutations of one person that run at once at one
	// manager. A page that opens asks for a dozen.
	maxAtOnce = 20
	// turnTime is how long one more waits for its turn.
	turnTime = 3 * time.Second
)

// turns counts the operations of persons that run. The zero value is ready.
type turns struct {
	mu sync.Mutex
	m  map[uuid.UUID]*queue
}

// queue is that of one person.
type queue struct {
	users   int // that run or wait
	running chan struct{}
}

// take waits for the person's turn, for a bounded time, and returns how to end it.
func (t *turns) take(ctx context.Context, who uuid.UUID) (leave func(), err error) {
	t.mu.Lock()
	if t.m == nil {
		t.m = map[uuid.UUID]*queue{}
	}
	q := t.m[who]
	if q == nil {
		q = &queue{running: make(chan struct{}, maxAtOnce)}
		t.m[who] = q
	}
	q.users++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if q.users--; q.users == 0 {
			delete(t.m, who)
		}
	}
	wait := time.NewTimer(turnTime)
	defer wait.Stop()
	select {
	case q.running <- struct{}{}:
		return func() { <-q.running; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	case <-wait.C:
		gone()
		return nil, problem.Exhausted("%d requests of yours run already at this manager; wait for their answers", maxAtOnce).
			WithLimit(strconv.Itoa(maxAtOnce)).RetryAfter(time.Second)
	}
}
