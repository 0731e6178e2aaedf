// Package starts records how long sessions waited, for what, and how long the stages of their starts took. The leader derives
// it from the history of the sessions, some seconds after each start. A leader that is killed loses nothing: the next one
// continues with the last start that is stored.
package starts

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

const (
	every = 10 * time.Second
	// batch limits the starts of one statement.
	batch = 500
	// lateness is how much later than its id an entry of the history can become visible: the time of a transaction, and the
	// difference of the clocks of two leaders.
	lateness = 2 * time.Minute
)

// Service records starts.
type Service struct {
	client  *ent.Client
	log     *slog.Logger
	waits   *prometheus.HistogramVec
	scanned time.Time // all starts before are stored
}

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Registry prometheus.Registerer // nil: no metrics
	Logger   *slog.Logger
}

// New returns a Service.
func New(cfg Config) *Service {
	s := &Service{client: cfg.Client, log: cfg.Logger, waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "berth_session_wait_seconds", Help: "Time from a session's place in the queue until it ran, by what it waited for most of the time.",
		Buckets: []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600},
	}, []string{"reason"})}
	for _, r := range []Reason{None, Group, Held, Limits, Room, Order, Retry, Unknown} {
		s.waits.WithLabelValues(string(r))
	}
	if cfg.Registry != nil {
		cfg.Registry.MustRegister(s.waits)
	}
	return s
}

// Lead records starts until ctx ends. Only the leader runs it.
func (s *Service) Lead(ctx context.Context) {
	s.scanned = time.Time{}
	tick := clock.NewTicker("starts of sessions", every)
	defer tick.Stop()
	for {
		if err := s.Collect(ctx, clock.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "record the starts of sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Collect records all starts that are not stored yet. After the first start of this version, these are all starts of the history.
func (s *Service) Collect(ctx context.Context, now time.Time) error {
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	after, err := s.cursor(ctx)
	if err != nil {
		return err
	}
	for {
		found, last, err := s.missing(ctx, after)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			if err := s.record(ctx, found); err != nil {
				return err
			}
		}
		if len(found) < batch {
			s.scanned = now.Add(-lateness)
			return nil
		}
		after = last
	}
}

// cursor returns the id after which entries are scanned. Ids begin with their time.
func (s *Service) cursor(ctx context.Context) (uuid.UUID, error) {
	if !s.scanned.IsZero() {
		return store.IDBefore(s.scanned), nil
	}
	rows, err := s.client.QueryContext(ctx, `SELECT started_at FROM session_starts ORDER BY started_at DESC LIMIT 1`)
	if err != nil {
		return uuid.Nil, fmt.Errorf("find the last start: %w", err)
	}
	defer rows.Close()
	var at time.Time
	if rows.Next() {
		if err := rows.Scan(&at); err != nil {
			return uuid.Nil, err
		}
	}
	if at.IsZero() {
		return uuid.Nil, rows.Err()
	}
	return store.IDBefore(at.Add(-lateness)), rows.Err()
}

// missing returns the entries about starts that are not stored, by session, and the id of the last one.
func (s *Service) missing(ctx context.Context, after uuid.UUID) (found map[uuid.UUID]uuid.UUID, last uuid.UUID, err error) {
	rows, err := s.client.QueryContext(ctx, `SELECT e.id, e.session_id FROM session_events e
WHERE e.id > $1 AND e.to_status = 'running' AND e.from_status <> 'running' AND NOT EXISTS (SELECT FROM session_starts s WHERE s.id = e.id)
ORDER BY e.id LIMIT $2`, after, batch)
	if err != nil {
		return nil, last, fmt.Errorf("find starts: %w", err)
	}
	defer rows.Close()
	found = map[uuid.UUID]uuid.UUID{}
	for rows.Next() {
		var session uuid.UUID
		if err := rows.Scan(&last, &session); err != nil {
			return nil, last, err
		}
		found[last] = session
	}
	return found, last, rows.Err()
}

// record stores starts.
func (s *Service) record(ctx context.Context, found map[uuid.UUID]uuid.UUID) error {
	sessions := map[uuid.UUID]bool{}
	for _, id := range found {
		sessions[id] = true
	}
	histories, err := s.histories(ctx, store.IDs(sessions))
	if err != nil {
		return err
	}
	r := &rows{}
	for session, h := range histories {
		list := Derive(h.queued, h.entries)
		for i, one := range list {
			if _, ok := found[one.Event]; ok {
				r.add(session, one, i == len(list)-1)
			}
		}
	}
	if err := r.insert(ctx, s.client); err != nil {
		return err
	}
	for i, reason := range r.reasons {
		s.waits.WithLabelValues(reason).Observe(float64(r.wait[i]) / 1000)
	}
	return nil
}
