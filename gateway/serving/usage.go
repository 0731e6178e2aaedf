package serving

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentkey"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
)

// storeEvery is the time between two updates of a key's row.
const storeEvery = time.Second

// usage adds what keys use to their rows, in batches, and to the limits in Redis at once.
type usage struct {
	client *ent.Client
	limits *limits
	log    *slog.Logger
	news   chan struct{} // tokens wait for Redis

	mu      sync.Mutex
	pending map[uuid.UUID]use   // not stored yet
	tokens  map[uuid.UUID]int64 // of keys with limits, not counted in Redis yet
}

// use is what a key used.
type use struct {
	requests, tokens int64
	last             time.Time
}

func (u use) and(o use) use {
	if o.last.After(u.last) {
		u.last = o.last
	}
	return use{u.requests + o.requests, u.tokens + o.tokens, u.last}
}

func (u *usage) init(client *ent.Client, l *limits, log *slog.Logger) {
	u.client, u.limits, u.log, u.news = client, l, log, make(chan struct{}, 1)
	u.pending, u.tokens = map[uuid.UUID]use{}, map[uuid.UUID]int64{}
}

// count counts a request of a key that has ended.
func (u *usage) count(h *holder, tokens int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending[h.ID] = u.pending[h.ID].and(use{1, int64(tokens), clock.Now()})
	if tokens > 0 && h.limited() {
		u.tokens[h.ID] += int64(tokens)
		select {
		case u.news <- struct{}{}:
		default:
		}
	}
}

// unstored returns the tokens of a key that its row does not have yet.
func (u *usage) unstored(key uuid.UUID) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pending[key].tokens
}

// run stores usage until ctx ends, and then what is left.
func (u *usage) run(ctx context.Context) {
	tick := time.NewTicker(storeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
			defer cancel()
			u.publish(last)
			u.store(last)
			return
		case <-u.news:
			u.publish(ctx)
		case <-tick.C:
			u.store(ctx)
		}
	}
}

// publish counts tokens in Redis. If that fails, they count when the row of the key has them.
func (u *usage) publish(ctx context.Context) {
	u.mu.Lock()
	tokens := u.tokens
	u.tokens = map[uuid.UUID]int64{}
	u.mu.Unlock()
	if err := u.limits.add(ctx, tokens); err != nil && ctx.Err() == nil {
		u.log.WarnContext(ctx, "count the tokens of keys", "error", err)
	}
}

// store adds what is pending to the rows of the keys. What cannot be stored stays pending.
func (u *usage) store(ctx context.Context) {
	u.mu.Lock()
	pending := u.pending
	u.pending = map[uuid.UUID]use{}
	u.mu.Unlock()
	ctx = viewer.SystemContext(ctx)
	ids := slices.SortedFunc(maps.Keys(pending), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for i, id := range ids {
		if err := u.add(ctx, id, pending[id]); err != nil {
			u.log.WarnContext(ctx, "store the usage of keys", "error", err)
			u.restore(pending, ids[i:])
			return
		}
	}
}

// add adds to a row. Usage of a key that was deleted is dropped.
func (u *usage) add(ctx context.Context, id uuid.UUID, n use) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	err := u.client.DeploymentKey.Update().Where(deploymentkey.ID(id)).
		AddUsedRequests(n.requests).AddUsedTokens(n.tokens).SetLastUsedAt(n.last).Exec(ctx)
	if err != nil {
		return fmt.Errorf("key %s: %w", id, err)
	}
	return nil
}

// restore makes what could not be stored pending again.
func (u *usage) restore(from map[uuid.UUID]use, ids []uuid.UUID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		u.pending[id] = u.pending[id].and(from[id])
	}
}
