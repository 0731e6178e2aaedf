package recovery

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
)

// term is what a leader knows about the age of the database.
type term struct {
	mu sync.Mutex
	// If an object has an ID from between these two times and is not in the database, the database
	// is older than the object.
	from, until time.Time
}

// Begin compares the database with etcd before a leader does anything, and turns recovery mode
// on if the database is older.
func (s *Service) Begin(ctx context.Context) error {
	row, err := s.Client.ClusterIdentity.Query().Only(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read when a leader last worked: %w", err)
	}
	from := row.CreatedAt
	if row.LedAt != nil {
		from = *row.LedAt
	}
	s.term.mu.Lock()
	s.term.from, s.term.until = from, clock.Now()
	s.term.mu.Unlock()
	at, err := s.noted(ctx)
	if err != nil {
		return err
	}
	if at.After(from) {
		reason := fmt.Sprintf("the database is of %s, and a leader worked until %s: it was restored from a backup",
			from.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
		if err := s.find(ctx, reason); err != nil {
			return err
		}
	}
	return s.beat(ctx)
}

// Unknown is called for containers of an agent that are not in the database. later are containers
// of a known kernel from a later start.
func (s *Service) Unknown(ctx context.Context, agent string, missing, later []uuid.UUID) error {
	newer := len(later)
	for _, id := range missing {
		if s.newer(id) {
			newer++
		}
	}
	if newer == 0 {
		return nil
	}
	return s.find(ctx, fmt.Sprintf("agent %s runs containers that are newer than the database (%d): it was restored from a backup", agent, newer))
}

// newer reports whether an id was created after the last time that the database recorded and
// before this leadership. Ids contain the time.
func (s *Service) newer(id uuid.UUID) bool {
	if id.Version() != 7 {
		return false
	}
	sec, nsec := id.Time().UnixTime()
	at := time.Unix(sec, nsec)
	s.term.mu.Lock()
	defer s.term.mu.Unlock()
	return at.After(s.term.from) && at.Before(s.term.until)
}

// Beat records the time until ctx ends. Only the leader calls it.
func (s *Service) Beat(ctx context.Context) {
	tick := clock.NewTicker("age of the database", beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.beat(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("record the age of the database", "error", err)
		}
	}
}

// Follow runs a leader's loops until ctx ends, and restarts them when the mode changes: run
// gets the mode, and returns when its context ends.
func (s *Service) Follow(ctx context.Context, run func(ctx context.Context, on bool) error) error {
	on, err := s.On(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := s.phase(ctx, on, run); err != nil || ctx.Err() != nil {
			return err
		}
		on = !on
		s.Logger.Info("recovery mode has changed", "on", on)
	}
	return nil
}

// phase runs the loops until the mode changes.
func (s *Service) phase(ctx context.Context, on bool, run func(ctx context.Context, on bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx, on) }()
	tick := clock.NewTicker("recovery mode", lookEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-s.wake:
		case <-tick.C:
		}
		now, err := s.On(ctx)
		if err != nil || now == on { // the mode stays the same while the database is unavailable
			continue
		}
		cancel()
		return <-done
	}
}

// On reports whether the cluster is in recovery mode.
func (s *Service) On(ctx context.Context) (bool, error) {
	state, err := s.Current(ctx)
	return state != nil, err
}
