package auth

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Limits of failures within a window. The count per user and address limits guesses of one
// password, the count per address limits attempts on many users, and the count per user limits
// attempts from many addresses. Known devices and known addresses have separate counts, so that
// failures elsewhere do not lock them out (familiar.go).
const (
	window       = 15 * time.Minute
	mostPair     = 10
	mostAddress  = 50
	mostUser     = 100
	mostFamiliar = 100    // of one address, for all users known there
	mostKeys     = 50_000 // in this process
	redisTimeout = 300 * time.Millisecond
)

// bucket counts attempts under a key. A success clears the first bucket of the attempt.
type bucket struct {
	key   string
	limit int
}

// throttle counts in Redis, for all managers, and in the process. Both must allow an attempt:
// if Redis is unavailable or was emptied, the counts of each manager remain.
type throttle struct {
	redis redis.UniversalClient
	log   *slog.Logger

	mu   sync.Mutex
	seen map[string][]attempt
}

type attempt struct {
	id string
	at time.Time
}

func newThrottle(client redis.UniversalClient, log *slog.Logger) *throttle {
	return &throttle{redis: client, log: log, seen: map[string][]attempt{}}
}

// loginBuckets returns the buckets of a login. The e-mail address is hashed, because Redis
// does not need it and keys stay short.
func loginBuckets(email string, from netip.Addr, f familiar) []bucket {
	user := hex.EncodeToString(hash(email)[:12])
	switch {
	case f.device != uuid.Nil:
		return []bucket{{"device:" + f.device.String(), mostPair}}
	case f.address:
		return []bucket{
			{"known:" + user + ":" + network(from), mostPair},
			{"familiar:" + network(from), mostFamiliar},
		}
	}
	return []bucket{
		{"pair:" + user + ":" + network(from), mostPair},
		{"address:" + network(from), mostAddress},
		{"user:" + user, mostUser},
	}
}

// take counts an attempt before it is made, so that concurrent attempts cannot pass the limit,
// and returns a function that removes it after success. If it returns a wait, the attempt must
// not be made.
func (t *throttle) take(ctx context.Context, buckets []bucket) (succeeded func(context.Context), wait time.Duration) {
	a := attempt{id: uuid.NewString(), at: time.Now()}
	if wait = t.takeHere(a, buckets); wait > 0 {
		return nil, wait
	}
	if wait = t.takeRedis(ctx, a, buckets); wait > 0 {
		return nil, wait
	}
	return func(ctx context.Context) { t.forget(ctx, a, buckets) }, 0
}

func (t *throttle) takeHere(a attempt, buckets []bucket) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range buckets {
		list := t.fresh(b.key, a.at)
		if len(list) >= b.limit {
			wait = max(wait, list[len(list)-b.limit].at.Add(window).Sub(a.at))
		}
	}
	if wait > 0 {
		return wait
	}
	t.makeRoom(a.at)
	for _, b := range buckets {
		t.seen[b.key] = append(t.seen[b.key], a)
	}
	return 0
}

// fresh drops the attempts of a key that are older than the window.
func (t *throttle) fresh(key string, at time.Time) []attempt {
	list := t.seen[key]
	for len(list) > 0 && at.Sub(list[0].at) >= window {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(t.seen, key)
		return nil
	}
	t.seen[key] = list
	return list
}

// makeRoom limits the memory that a client with many addresses can use.
func (t *throttle) makeRoom(at time.Time) {
	if len(t.seen) < mostKeys {
		return
	}
	for key := range maps.Clone(t.seen) {
		t.fresh(key, at)
	}
	for key := range t.seen {
		if len(t.seen) < mostKeys/2 {
			return
		}
		delete(t.seen, key)
	}
}

// takeScript does the same for all managers: it returns the milliseconds to wait, or counts
// the attempt and returns 0.
var takeScript = redis.NewScript(`
local now, window, wait = tonumber(ARGV[1]), tonumber(ARGV[2]), 0
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  local limit = tonumber(ARGV[3 + i])
  local count = redis.call('ZCARD', key)
  if count >= limit then
    local first = redis.call('ZRANGE', key, count - limit, count - limit, 'WITHSCORES')
    wait = math.max(wait, tonumber(first[2]) + window - now)
  end
end
if wait > 0 then return wait end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now, ARGV[3])
  redis.call('PEXPIRE', key, window)
end
return 0`)

func (t *throttle) takeRedis(ctx context.Context, a attempt, buckets []bucket) time.Duration {
	if t.redis == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	keys, args := make([]string, len(buckets)), []any{a.at.UnixMilli(), window.Milliseconds(), a.id}
	for i, b := range buckets {
		keys[i], args = redisKey(b), append(args, b.limit)
	}
	wait, err := takeScript.Run(ctx, t.redis, keys, args...).Int64()
	if err != nil {
		t.log.WarnContext(ctx, "login attempts are counted in this process only", "error", err)
		return 0
	}
	return time.Duration(wait) * time.Millisecond
}

func (t *throttle) forget(ctx context.Context, a attempt, buckets []bucket) {
	t.mu.Lock()
	delete(t.seen, buckets[0].key)
	for _, b := range buckets[1:] {
		list := t.seen[b.key]
		for i := range list {
			if list[i].id == a.id {
				t.seen[b.key] = append(append([]attempt(nil), list[:i]...), list[i+1:]...)
				break
			}
		}
	}
	t.mu.Unlock()
	if t.redis == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	_, err := t.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, redisKey(buckets[0]))
		for _, b := range buckets[1:] {
			p.ZRem(ctx, redisKey(b), a.id)
		}
		return nil
	})
	if err != nil {
		t.log.WarnContext(ctx, "forget attempts after a success", "error", err)
	}
}

// redisKey has a hash tag, so that all keys of a script are on one node of a Redis cluster.
func redisKey(b bucket) string { return "berth:{login}:" + b.key }

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
