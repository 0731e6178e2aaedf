// Package stats stores the latest samples of kernels and agents, and sums usage. Samples are
// in Redis and can be lost; a kernel's last samples are saved on its row when it ends, and
// package series keeps their history. Usage is summed from the allocations.
package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
)

// Topic is the topic of events about new samples, one per kernel.
const Topic event.Topic = "stats"

// keep is how long samples outlive their source: 720 intervals of 5 s, enough to distinguish a
// delayed source from one that has ended.
const keep = time.Hour

// Service stores and reads samples.
type Service struct {
	redis    redis.UniversalClient
	bus      *event.Bus
	observer Observer
	history  History
	log      *slog.Logger
}

// Observer receives the samples of each kernel as they arrive.
type Observer interface {
	Sampled(kernel uuid.UUID, metrics []report.Metric)
}

// History keeps the samples of an agent: its own, and those of its kernels.
type History interface {
	Record(agent uuid.UUID, samples map[uuid.UUID][]report.Metric)
}

// Config has the dependencies of a Service.
type Config struct {
	Redis    redis.UniversalClient
	Bus      *event.Bus
	Observer Observer // can be nil
	History  History  // can be nil
	Logger   *slog.Logger
}

// New returns a Service.
func New(cfg Config) *Service {
	return &Service{redis: cfg.Redis, bus: cfg.Bus, observer: cfg.Observer, history: cfg.History, log: cfg.Logger}
}

// Record stores one report of an agent and notifies subscribers.
func (s *Service) Record(ctx context.Context, agent uuid.UUID, r *agentpb.StatsReport) {
	at := time.UnixMilli(r.UnixMs).UTC()
	pipe := s.redis.Pipeline()
	put := func(id uuid.UUID, metrics []report.Metric) []byte {
		b, err := json.Marshal(report.Stats{At: at, Metrics: metrics})
		if err != nil { // a NaN from a plugin
			s.log.Warn("samples cannot be stored", "id", id, "error", err)
			return nil
		}
		pipe.Set(ctx, key(id), b, keep)
		return b
	}
	samples := map[uuid.UUID][]report.Metric{agent: convert(r.Node)}
	put(agent, samples[agent])
	for _, k := range r.Kernels {
		id, err := uuid.Parse(k.KernelId)
		if err != nil {
			continue
		}
		metrics := convert(k.Metrics)
		samples[id] = metrics
		if s.observer != nil {
			s.observer.Sampled(id, metrics)
		}
		if b := put(id, metrics); b != nil {
			s.bus.Publish(ctx, event.Event{Topic: Topic, ID: id, Data: b})
		}
	}
	if s.history != nil {
		s.history.Record(agent, samples)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		s.log.Debug("samples not stored", "agent", agent, "error", err)
	}
}

// Latest returns the newest samples of the given kernels or agents; those without samples are
// missing. It returns none if Redis cannot be reached.
func (s *Service) Latest(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]report.Stats, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = key(id)
	}
	values, err := s.redis.MGet(ctx, keys...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.log.Debug("samples not read", "error", err)
		return nil, nil
	}
	latest := make(map[uuid.UUID]report.Stats, len(ids))
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			continue
		}
		var st report.Stats
		if err := json.Unmarshal([]byte(text), &st); err != nil {
			return nil, fmt.Errorf("read samples of %s: %w", ids[i], err)
		}
		latest[ids[i]] = st
	}
	return latest, nil
}

func key(id uuid.UUID) string { return "berth:stats:" + id.String() }

func convert(metrics []*agentpb.Metric) []report.Metric {
	out := make([]report.Metric, 0, len(metrics))
	for _, m := range metrics {
		out = append(out, report.Metric{
			Name: m.Name, DeviceID: m.DeviceId, Value: m.Value, Capacity: m.Capacity,
			Unit: m.Unit, Quality: quality[m.Quality],
		})
	}
	return out
}

var quality = map[agentpb.Metric_Quality]string{
	agentpb.Metric_MEASURED:    "measured",
	agentpb.Metric_ATTRIBUTED:  "attributed",
	agentpb.Metric_ESTIMATED:   "estimated",
	agentpb.Metric_UNAVAILABLE: "unavailable",
}
