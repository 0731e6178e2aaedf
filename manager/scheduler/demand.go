package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// recentSessions is the number of the latest sessions that the demand is computed from.
const recentSessions = 5000

// readDemand counts the shapes of the latest sessions, in any state.
func (s *Scheduler) readDemand(ctx context.Context) ([]plan.Demand, error) {
	var rows []struct {
		Group        uuid.UUID `json:"group"`
		Architecture string    `json:"architecture"`
		Slots        string    `json:"slots"`
		Count        int       `json:"count"`
	}
	err := s.client.Kernel.Query().Modify(func(k *sql.Selector) {
		t := sql.Table(session.Table)
		latest := sql.Dialect(dialect.Postgres).
			Select(t.C(session.FieldID), t.C(session.FieldResourceGroupID), t.C(session.FieldImageID)).From(t).
			OrderBy(sql.Desc(t.C(session.FieldCreatedAt))).Limit(recentSessions).As("latest")
		i := sql.Table(image.Table).As("i")
		k.Join(latest).On(k.C(kernel.FieldSessionID), latest.C(session.FieldID)).
			Join(i).On(latest.C(session.FieldImageID), i.C(image.FieldID))
		group, architecture, slots := latest.C(session.FieldResourceGroupID), i.C(image.FieldArchitecture), k.C(kernel.FieldSlots)
		k.Select(sql.As(group, "group"), sql.As(architecture, "architecture"), sql.As(slots+"::text", "slots"), sql.As("COUNT(*)", "count")).
			GroupBy(group, architecture, slots)
	}).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	var list []plan.Demand
	for _, r := range rows {
		d := plan.Demand{Group: r.Group, Architecture: r.Architecture, Weight: float64(r.Count), Slots: resource.Slots{}}
		if err := json.Unmarshal([]byte(r.Slots), &d.Slots); err != nil {
			return nil, fmt.Errorf("slots of recent sessions: %w", err)
		}
		list = append(list, d)
	}
	return list, nil
}

// cacheAge is the largest age of a sum over the past. It is small next to the weeks, or
// the thousands of sessions, that are summed.
const cacheAge = time.Minute

// cached keeps a value that was read from the database, and reads it again when it is
// older than cacheAge. One caller reads at a time; a caller that waits for the read stops
// when its context ends.
type cached[T any] struct {
	turn  *semaphore.Weighted
	at    time.Time
	value T
}

func newCached[T any]() *cached[T] { return &cached[T]{turn: semaphore.NewWeighted(1)} }

func (l *cached[T]) get(ctx context.Context, now time.Time, read func() (T, error)) (value T, err error) {
	if err := l.turn.Acquire(ctx, 1); err != nil {
		return value, err
	}
	defer l.turn.Release(1)
	if !l.at.IsZero() && now.Sub(l.at) < cacheAge {
		return l.value, nil
	}
	if value, err = read(); err == nil {
		l.at, l.value = now, value
	}
	return value, err
}
