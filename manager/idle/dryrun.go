package idle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Trial is the effect that a checker would have on the sessions that the viewer can see.
type Trial struct {
	Examined int // running sessions that it would apply to
	Ending   int // of these, sessions that it would end now
	Unknown  int // of these, sessions without enough measurements
	Exempt   int // of these, sessions that are exempt
	Sessions []*TrialEnd
}

// TrialEnd is a session that the checker would end.
type TrialEnd struct {
	Session *ent.Session
	EndsAt  time.Time // ignoring the time of a warning
	Now     bool
	Reason  string
}

// maxTrial limits the list of a trial to the sessions that would end first.
const maxTrial = 1000

// IdleDryRun returns the effect that an existing or a described checker would have now. An
// existing checker applies to its bindings unless others are given here; a described one
// applies to all sessions unless bindings are given. Nothing is changed.
func (s *Service) IdleDryRun(ctx context.Context, checker *uuid.UUID, input *CreateIdleCheckerInput, domain, project, group *uuid.UUID) (*Trial, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return nil, problem.Unauthenticated("log in first")
	}
	if !v.SeesAll() && v.Role != viewer.RoleAdmin {
		return nil, problem.Forbidden("only administrators may try idle checkers out")
	}
	at := place{domain, project, group}
	if err := s.exists(ctx, at); err != nil {
		return nil, err
	}
	if (checker == nil) == (input == nil) {
		return nil, problem.Invalid("checker", "name either an existing checker or, as input, a new one, not both")
	}
	one := bound{places: []place{at}}
	if input != nil {
		c, err := s.made(ctx, *input)
		if err != nil {
			return nil, err
		}
		one.Rule = ruleOf(c)
	} else {
		c, err := s.Client.IdleChecker.Get(ctx, *checker)
		if err != nil {
			return nil, permit.Missing(err, "idle checker", "checker")
		}
		one.Rule = ruleOf(c)
		if domain == nil && project == nil && group == nil {
			list, err := c.QueryBindings().All(ctx)
			if err != nil {
				return nil, fmt.Errorf("read bindings: %w", err)
			}
			one.places = nil
			for _, b := range list {
				one.places = append(one.places, placeOf(b))
			}
		}
	}
	return s.try(ctx, one)
}

func (s *Service) try(ctx context.Context, one bound) (*Trial, error) {
	all := viewer.SystemContext(ctx)
	book := &rulebook{checkers: []bound{one}}
	running, err := s.running(all, book, s.written)
	if err != nil {
		return nil, err
	}
	seen, err := s.inSight(ctx)
	if err != nil {
		return nil, err
	}
	now, out := s.Now(), &Trial{Sessions: []*TrialEnd{}}
	for i := range running {
		c := &running[i]
		if !seen[c.ID] || len(book.of(c.Session)) == 0 || !slices.Contains(one.Types, c.on.Type) {
			continue
		}
		out.Examined++
		if c.IdleExempt {
			out.Exempt++
			continue
		}
		due, why, ok := one.Due(&c.on, now)
		if !ok {
			if one.blind(&c.on) {
				out.Unknown++
			}
			continue
		}
		end := &TrialEnd{Session: c.Session, EndsAt: due, Now: !due.After(now), Reason: why}
		if end.Now {
			out.Ending++
		}
		out.Sessions = append(out.Sessions, end)
	}
	slices.SortFunc(out.Sessions, func(a, b *TrialEnd) int {
		return cmp.Or(a.EndsAt.Compare(b.EndsAt), cmp.Compare(a.Session.Name, b.Session.Name))
	})
	out.Sessions = out.Sessions[:min(len(out.Sessions), maxTrial)]
	return out, s.whole(ctx, out)
}

// inSight returns the sessions that the viewer can see.
func (s *Service) inSight(ctx context.Context) (map[uuid.UUID]bool, error) {
	ids, err := s.Client.Session.Query().Where(entsession.TerminatedAtIsNil(), entsession.StatusEQ(lifecycle.Running)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions in sight: %w", err)
	}
	seen := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		seen[id] = true
	}
	return seen, nil
}

// whole reads the sessions of a trial with all columns, for queries that select more fields.
// Sessions that no longer exist are left out.
func (s *Service) whole(ctx context.Context, t *Trial) error {
	ids := make([]uuid.UUID, len(t.Sessions))
	for i, end := range t.Sessions {
		ids[i] = end.Session.ID
	}
	list, err := s.Client.Session.Query().Where(entsession.IDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read sessions that would end: %w", err)
	}
	byID := make(map[uuid.UUID]*ent.Session, len(list))
	for _, sess := range list {
		byID[sess.ID] = sess
	}
	for _, end := range t.Sessions {
		end.Session = byID[end.Session.ID]
	}
	t.Sessions = slices.DeleteFunc(t.Sessions, func(end *TrialEnd) bool { return end.Session == nil })
	return nil
}

// written returns the measurements of kernels that the leader has stored.
func (s *Service) written(ctx context.Context, kernels []uuid.UUID) *Measurements {
	m := NewMeasurements(s.Redis, s.Now, s.Logger)
	m.load(ctx, kernels)
	return m
}
