package idle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/idleactivity"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session"
)

// topic is the topic of events about changes of checkers or bindings.
const topic event.Topic = "idle"

const (
	// passEvery is the interval between checks of all running sessions.
	passEvery = 10 * time.Second
	// sweepEvery is the interval between deletions of the data of ended sessions.
	sweepEvery = time.Hour
	// maxNotes limits one transaction.
	maxNotes = 1000
)

// Config has the dependencies of a Service.
type Config struct {
	Client   *ent.Client
	Bus      *event.Bus
	Policies *policy.Service
	Sessions *session.Service
	Redis    redis.UniversalClient // stores the time of the last check
	// Measurements of the kernels whose agents report to this manager.
	Measurements *Measurements
	Logger       *slog.Logger
	Now          func() time.Time // nil: the system clock
}

// Service stores checkers and, on the leader, applies them. New creates one.
type Service struct {
	Config
	visits counts
	swept  time.Time // used only by the leader
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Now == nil {
		cfg.Now = clock.Now
	}
	return &Service{
		Config: cfg,
		visits: counts{open: map[*Connection]struct{}{}, left: map[useOf]time.Time{}, at: map[useOf]time.Time{}},
	}
}

// Lead checks the running sessions until ctx ends. Only the leader calls it.
func (s *Service) Lead(ctx context.Context, epoch int64) {
	ctx = viewer.SystemContext(ctx)
	changes := s.Bus.Subscribe(ctx, topic)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.Measurements.keep(ctx) })
	begun := false
	for {
		next, err := passEvery, error(nil)
		if !begun {
			err = s.Begin(ctx)
			begun = err == nil
		}
		if begun {
			next, err = s.Pass(ctx, epoch)
		}
		if err != nil && ctx.Err() == nil && !errdefs.IsAborted(err) {
			s.Logger.Error("look for idle sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		case _, ok := <-changes:
			if !ok {
				return
			}
		}
	}
}

// Pass checks every running session once, warns and ends, and returns the time of the next
// check.
func (s *Service) Pass(ctx context.Context, epoch int64) (time.Duration, error) {
	rules, err := s.rules(ctx)
	if err != nil {
		return passEvery, err
	}
	running, err := s.running(ctx, rules, func(context.Context, []uuid.UUID) *Measurements { return s.Measurements })
	if err != nil {
		return passEvery, err
	}
	now, next := s.Now(), passEvery
	var notes []session.IdleNote
	for i := range running {
		c := &running[i]
		var is *report.Idle
		if !c.IdleExempt {
			is = Decide(rules.of(c.Session), &c.on, c.Idle, now)
		}
		switch {
		case over(is, now):
			err := s.Sessions.EndIdle(ctx, epoch, c.Session, c.on.newest(), "idle by "+is.Checker+": "+is.Reason)
			if err != nil && !errdefs.IsAborted(err) {
				return passEvery, fmt.Errorf("end session %s: %w", c.ID, err)
			}
			if err == nil {
				s.Logger.Info("idle session ended", "session", c.ID, "checker", is.Checker, "reason", is.Reason)
			}
		case differs(c.Idle, is, now):
			notes = append(notes, session.IdleNote{Session: c.Session, Idle: is, Warning: warning(c.Idle, is)})
		}
		if is != nil {
			next = min(next, max(is.EndsAt.Sub(now), 100*time.Millisecond))
		}
	}
	for len(notes) > 0 {
		n := min(len(notes), maxNotes)
		if err := s.Sessions.NoteIdle(ctx, epoch, notes[:n]); err != nil {
			return passEvery, err
		}
		notes = notes[n:]
	}
	s.looked(ctx, now)
	return next, s.sweep(ctx, now)
}

// sweep deletes the times of use of ended sessions, at intervals.
func (s *Service) sweep(ctx context.Context, now time.Time) error {
	if now.Sub(s.swept) < sweepEvery {
		return nil
	}
	_, err := s.Client.IdleActivity.Delete().Where(idleactivity.HasSessionWith(entsession.TerminatedAtNotNil())).Exec(ctx)
	if err != nil {
		return fmt.Errorf("forget when ended sessions were used: %w", err)
	}
	s.swept = now
	return nil
}

// warning is the message to the owner before the end, sent once.
func warning(before, is *report.Idle) string {
	if is == nil || is.WarnedAt.IsZero() ||
		before != nil && before.Checker == is.Checker && before.WarnedAt.Equal(is.WarnedAt) {
		return ""
	}
	return "will be ended at " + clockTime(is.EndsAt) + " by " + is.Checker + ": " + is.Reason
}
