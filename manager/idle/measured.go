package idle

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/report"
)

const (
	// saveEvery is the largest amount of measurements that a change of leaders can lose.
	saveEvery = time.Minute
	// saved is how long measurements are stored after their kernel has ended.
	saved = 24 * time.Hour
	// perCall limits the keys of one Redis call.
	perCall = 500
)

// Measurements is the measured utilization of running kernels. It is in the leader's memory, and
// in Redis for the next leader and for dry runs. It can be lost, because missing data counts
// as activity.
type Measurements struct {
	redis redis.UniversalClient
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	kernels map[uuid.UUID]History
}

// NewMeasurements returns Measurements that are stored in client; now is the clock.
func NewMeasurements(client redis.UniversalClient, now func() time.Time, log *slog.Logger) *Measurements {
	return &Measurements{redis: client, now: now, log: log, kernels: map[uuid.UUID]History{}}
}

// Sampled adds the samples of a kernel, at the time of their arrival by our clock.
func (m *Measurements) Sampled(kernel uuid.UUID, metrics []report.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.kernels[kernel]
	if h == nil {
		h = History{}
		m.kernels[kernel] = h
	}
	h.add(m.now(), metrics)
}

// over returns the level of a session's kernels.
func (m *Measurements) over(kernels []uuid.UUID, series string, span time.Duration, now time.Time) (Level, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]History, len(kernels))
	for i, k := range kernels {
		list[i] = m.kernels[k]
	}
	return together(list, series, span, now)
}

// load reads the measurements that the previous leader has stored, and replaces those of an
// earlier leadership of this manager.
func (m *Measurements) load(ctx context.Context, kernels []uuid.UUID) {
	found := m.read(ctx, kernels)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kernels = found
}

// read returns the stored measurements of kernels; some kernels may have none.
func (m *Measurements) read(ctx context.Context, kernels []uuid.UUID) map[uuid.UUID]History {
	out := make(map[uuid.UUID]History, len(kernels))
	for part := range slices.Chunk(kernels, perCall) {
		keys := make([]string, len(part))
		for i, k := range part {
			keys[i] = key(k)
		}
		values, err := m.redis.MGet(ctx, keys...).Result()
		if err != nil {
			if !errors.Is(err, redis.Nil) && ctx.Err() == nil {
				m.log.Warn("read the usage of kernels", "error", err)
			}
			continue
		}
		for i, v := range values {
			text, ok := v.(string)
			if !ok {
				continue
			}
			var h History
			if err := gob.NewDecoder(bytes.NewReader([]byte(text))).Decode(&h); err != nil {
				m.log.Warn("read the usage of a kernel", "kernel", part[i], "error", err)
				continue
			}
			out[part[i]] = h
		}
	}
	return out
}

// keep stores the measurements at intervals, and once more when ctx has ended.
func (m *Measurements) keep(ctx context.Context) { andAtLast(ctx, saveEvery, m.save) }

// save stores all measurements and drops kernels that are no longer measured.
func (m *Measurements) save(ctx context.Context) {
	m.mu.Lock()
	for id, h := range m.kernels {
		if m.now().Sub(h.last()) > time.Hour {
			delete(m.kernels, id)
		}
	}
	ids := slices.Collect(maps.Keys(m.kernels))
	m.mu.Unlock()
	for part := range slices.Chunk(ids, perCall) {
		pipe := m.redis.Pipeline()
		for _, id := range part {
			var b bytes.Buffer
			m.mu.Lock()
			err := gob.NewEncoder(&b).Encode(m.kernels[id])
			m.mu.Unlock()
			if err != nil {
				m.log.Warn("save the usage of a kernel", "kernel", id, "error", err)
				continue
			}
			pipe.Set(ctx, key(id), b.Bytes(), saved)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			m.log.Debug("save the usage of kernels", "error", err)
			return
		}
	}
}

func key(kernel uuid.UUID) string { return "berth:idle:" + kernel.String() }

// last returns the time of the newest sample.
func (h History) last() (at time.Time) {
	for _, s := range h {
		at = later(at, s.Last)
	}
	return at
}
