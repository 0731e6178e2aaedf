package idle

import (
	"context"
	"fmt"
	"strconv"
	"time"

	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
)

const (
	// lookedKey is the time of a leader's last check, in Unix milliseconds.
	lookedKey = "berth:idle:looked"
	// blindAfter is the time without a check after which users may have been unable to connect
	// to sessions.
	blindAfter = time.Minute
)

// Begin takes over from the previous leader. Time without a leader does not count as idle, because
// users may have been unable to connect: the times of last use are moved forward by it. If Redis
// has lost the time of the last check, all sessions count as used now.
func (s *Service) Begin(ctx context.Context) error {
	_, kernels, err := s.kernels(ctx)
	if err != nil {
		return err
	}
	s.Measurements.load(ctx, kernels)
	now := s.Now()
	blind := now.Sub(time.UnixMilli(0))
	if text, err := s.Redis.Get(ctx, lookedKey).Result(); err == nil {
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
			blind = now.Sub(time.UnixMilli(ms))
		}
	}
	if blind <= blindAfter {
		return nil
	}
	used, err := s.used(ctx)
	if err != nil {
		return err
	}
	list, err := s.Client.Session.Query().Where(entsession.TerminatedAtIsNil(), entsession.StatusEQ(lifecycle.Running), entsession.StartedAtNotNil()).
		Select(entsession.FieldStartedAt).All(ctx)
	if err != nil {
		return fmt.Errorf("list running sessions: %w", err)
	}
	moved := make(map[useOf]time.Time, len(list))
	for _, sess := range list {
		at := *sess.StartedAt
		for _, t := range used[sess.ID] { // ignored apps as well, because the times of apps are unchanged
			at = later(at, t)
		}
		if at = at.Add(blind); at.After(now) {
			at = now
		}
		moved[useOf{session: sess.ID}] = at
	}
	if len(moved) == 0 {
		return nil
	}
	s.Logger.Info("no manager checked for idle sessions for some time", "for", blind, "sessions", len(moved))
	return s.note(ctx, moved)
}

// looked stores the time of a check.
func (s *Service) looked(ctx context.Context, at time.Time) {
	if err := s.Redis.Set(ctx, lookedKey, at.UnixMilli(), 0).Err(); err != nil {
		s.Logger.Debug("record the time of the check", "error", err)
	}
}
