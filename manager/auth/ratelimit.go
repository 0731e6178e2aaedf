package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	rateWindow  = 15 * time.Minute
	defaultRate = 10_000 // requests per window, for a keypair without its own limit
)

// rates counts the requests of keypairs in fixed windows: in Redis for all managers, and in
// the process for when Redis is unavailable.
type rates struct {
	redis redis.UniversalClient
	warn  func(ctx context.Context, msg string, args ...any)

	mu     sync.Mutex
	window int64
	seen   map[uuid.UUID]int // in this window
}

// rate is the state of a keypair after a request.
type rate struct {
	limit, remaining int
	wait             time.Duration // until the next window, if the limit is exceeded
}

// take counts a request of a keypair.
func (x *rates) take(ctx context.Context, keypair uuid.UUID, own *int) rate {
	at := time.Now()
	out := rate{limit: defaultRate}
	if own != nil {
		out.limit = *own
	}
	window := at.UnixNano() / int64(rateWindow)
	used := max(x.countHere(keypair, window), x.countRedis(ctx, keypair, window))
	out.remaining = max(0, out.limit-used)
	if used > out.limit {
		out.wait = time.Unix(0, (window+1)*int64(rateWindow)).Sub(at)
	}
	return out
}

func (x *rates) countHere(keypair uuid.UUID, window int64) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen == nil || x.window != window {
		x.seen, x.window = map[uuid.UUID]int{}, window
	}
	x.seen[keypair]++
	return x.seen[keypair]
}

func (x *rates) countRedis(ctx context.Context, keypair uuid.UUID, window int64) int {
	if x.redis == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	key := fmt.Sprintf("berth:rate:%s:%d", keypair, window)
	var n *redis.IntCmd
	_, err := x.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		n = p.Incr(ctx, key)
		p.Expire(ctx, key, 2*rateWindow)
		return nil
	})
	if err != nil {
		x.warn(ctx, "requests of keypairs are counted in this process only", "error", err)
		return 0
	}
	return int(n.Val())
}
