package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// validFor is the time after which a report no longer counts: its gateway has ended, or cannot reach Redis.
	validFor = 5 * time.Second
	// storedFor is the time after which the reports about a deployment are deleted.
	storedFor = time.Minute
)

// Store keeps reports in Redis, whose clock dates them.
type Store struct{ Redis redis.UniversalClient }

func keyOf(deployment uuid.UUID) string { return "berth:serving:" + deployment.String() }

// dated is a report with the time at which it was stored.
type dated struct {
	At     int64 // milliseconds, by the clock of Redis
	Report Report
}

// Put stores the report of a gateway in place of its last one.
func (s *Store) Put(ctx context.Context, gateway string, deployment uuid.UUID, r Report) error {
	now, err := s.Redis.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read the time of Redis: %w", err)
	}
	text, err := json.Marshal(dated{now.UnixMilli(), r})
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, keyOf(deployment), gateway, text)
		p.Expire(ctx, keyOf(deployment), storedFor)
		return nil
	})
	if err != nil {
		return fmt.Errorf("store report: %w", err)
	}
	return nil
}

// Remove deletes the reports of a gateway that ends.
func (s *Store) Remove(ctx context.Context, gateway string, deployments ...uuid.UUID) error {
	_, err := s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range deployments {
			p.HDel(ctx, keyOf(id), gateway)
		}
		return nil
	})
	return err
}

// Read returns the total of each deployment; none for a deployment that no gateway reports about.
func (s *Store) Read(ctx context.Context, deployments ...uuid.UUID) (map[uuid.UUID]Total, error) {
	out := map[uuid.UUID]Total{}
	if len(deployments) == 0 {
		return out, nil
	}
	found := make([]*redis.MapStringStringCmd, len(deployments))
	var now *redis.TimeCmd
	_, err := s.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		now = p.Time(ctx)
		for i, id := range deployments {
			found[i] = p.HGetAll(ctx, keyOf(id))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read reports: %w", err)
	}
	oldest := now.Val().Add(-validFor).UnixMilli()
	for i, id := range deployments {
		var valid []Report
		for _, text := range found[i].Val() {
			var d dated
			if json.Unmarshal([]byte(text), &d) == nil && d.At >= oldest {
				valid = append(valid, d.Report)
			}
		}
		if len(valid) > 0 {
			out[id] = Sum(valid...)
		}
	}
	return out, nil
}
