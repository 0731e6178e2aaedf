package serving

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/gateway/inference"
)

const (
	redisTime = 300 * time.Millisecond
	// countedFor is the time after which Redis forgets what a key used. Then the row of the key counts.
	countedFor = 2 * time.Hour
)

// limits counts the use of keys in Redis, for all gateways.
type limits struct{ redis redis.UniversalClient }

// takeScript counts a request of a key if it is within the limits. It returns the limit that it exceeds, or 0, and the
// seconds until the next minute. Redis has the time, so that gateways agree about the minute.
var takeScript = redis.NewScript(`
local clock = redis.call('TIME')
local minute = math.floor(clock[1] / 60)
local has = redis.call('HMGET', KEYS[1], 'minute', 'requests', 'tokens', 'used')
local requests, tokens = tonumber(has[2] or 0), tonumber(has[3] or 0)
if tonumber(has[1] or 0) ~= minute then requests, tokens = 0, 0 end
local used = math.max(tonumber(has[4] or 0), tonumber(ARGV[4]))
local most, rate, budget = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wait = 60 - clock[1] % 60
if budget > 0 and used >= budget then return {3, 0} end
if most > 0 and requests >= most then return {1, wait} end
if rate > 0 and tokens >= rate then return {2, wait} end
redis.call('HSET', KEYS[1], 'minute', minute, 'requests', requests + 1, 'tokens', tokens, 'used', string.format('%.0f', used))
redis.call('EXPIRE', KEYS[1], ARGV[5])
return {0, 0}`)

// addScript adds the tokens of a request that has ended.
var addScript = redis.NewScript(`
local minute = math.floor(redis.call('TIME')[1] / 60)
if tonumber(redis.call('HGET', KEYS[1], 'minute') or 0) ~= minute then
  redis.call('HSET', KEYS[1], 'minute', minute, 'requests', 0, 'tokens', 0)
end
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'used', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 0`)

// Limits of a key, as takeScript returns them.
const (
	requestsPerMinute = 1
	tokensPerMinute   = 2
	tokenBudget       = 3
)

func limitKey(id uuid.UUID) string { return "berth:serving:key:" + id.String() }

// limited reports whether a key has a limit.
func (h *holder) limited() bool {
	return h != nil && (h.RequestsPerMinute > 0 || h.TokensPerMinute > 0 || h.TokenBudget > 0)
}

// take counts a request of a key. The tokens of a request are known at its end, so requests that run at the same time
// can exceed a limit of tokens.
func (l *limits) take(ctx context.Context, h *holder, u *usage) error {
	if !h.limited() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisTime)
	defer cancel()
	used := h.UsedTokens + u.unstored(h.ID)
	got, err := takeScript.Run(ctx, l.redis, []string{limitKey(h.ID)},
		h.RequestsPerMinute, h.TokensPerMinute, h.TokenBudget, used, int(countedFor.Seconds())).Int64Slice()
	if err != nil || len(got) != 2 {
		return &inference.Unavailable{Message: "the limits of the key cannot be checked at the moment", Err: err}
	}
	after := time.Duration(got[1]) * time.Second
	switch got[0] {
	case requestsPerMinute:
		return &inference.Limit{Message: fmt.Sprintf("the key has a limit of %d requests per minute", h.RequestsPerMinute), After: after}
	case tokensPerMinute:
		return &inference.Limit{Message: fmt.Sprintf("the key has a limit of %d tokens per minute", h.TokensPerMinute), After: after}
	case tokenBudget:
		return fmt.Errorf("the key has used its budget of %d tokens: %w", h.TokenBudget, errdefs.ErrResourceExhausted)
	}
	return nil
}

// add counts the tokens of requests that have ended.
func (l *limits) add(ctx context.Context, tokens map[uuid.UUID]int64) error {
	ctx, cancel := context.WithTimeout(ctx, redisTime)
	defer cancel()
	for id, n := range tokens {
		if err := addScript.Run(ctx, l.redis, []string{limitKey(id)}, n, int(countedFor.Seconds())).Err(); err != nil {
			return fmt.Errorf("count tokens: %w", err)
		}
	}
	return nil
}
