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

// term is what a leader knows of the database's age.
type term struct {
	mu sync.Mutex
	// What was made between these two times is newer than the database, if it is not in it.
	from, until time.Time
}

// Begin compares the database with etcd before a leader does anything, and turns
// recovery mode on when the database is the older one.
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

// Unknown hears of containers of an agent that the database does not know. later are
// those of a kernel that it knows, from a later start.
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

// newer reports whether an id was made after the database's last note of the time and
// before this term. Ids have the time in them.
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

// Beat notes the time until ctx ends. Only the elected leader calls it.
func (s *Service) Beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.beat(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("note how old the database is", "error", err)
		}
	}
}

// Follow runs a leader's loops until ctx ends, and again whenever the mode changes: run
// gets whether it is on, and returns when its context ends.
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

// phase runs the loops until the mode is another one.
func (s *Service) phase(ctx context.Context, on bool, run func(ctx context.Context, on bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx, on) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-s.wake:
		case <-tick.C:
		}
		now, err := s.On(ctx)
		if err != nil || now == on { // the mode stays while the database is away
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
