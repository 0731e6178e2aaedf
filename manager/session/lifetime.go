package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/store"
)

const (
	// maxWarning is how long before its end a session is warned. A session with less than ten times
	// this lifetime is warned after nine tenths of it.
	maxWarning = 5 * time.Minute
	// warned is the code of that entry in the history.
	warned = "lifetime_warning"
	// lived is the code of the entry at the end of a lifetime: the session's own, or that of a
	// policy. The message says which.
	lived = "lifetime"
)

// EndsAt returns the end of a session's own lifetime; nil before it runs, and for a session without
// a lifetime.
func EndsAt(sess *ent.Session) *time.Time {
	if sess.Lifetime == nil || sess.StartedAt == nil {
		return nil
	}
	at := sess.StartedAt.Add(time.Duration(*sess.Lifetime) * time.Second)
	return &at
}

// Lifetime returns how long a session can run, by its own lifetime and by the limits that apply to
// it; 0 is forever.
func Lifetime(limits []policy.Limit, at policy.Place, own *int) time.Duration {
	seconds := 0
	if own != nil {
		seconds = *own
	}
	if l := shortest(limits, at); l != nil && (seconds == 0 || *l.MaxSessionLifetime < seconds) {
		seconds = *l.MaxSessionLifetime
	}
	return time.Duration(seconds) * time.Second
}

// term is the time that a session can run, and the limit that determines it.
type term struct {
	lifetime time.Duration
	why      string
}

// termOf returns the earliest end of a session, by its own lifetime or by a limit; nil: there is
// none.
func termOf(limits []policy.Limit, sess *ent.Session) (t *term) {
	if sess.Lifetime != nil {
		own := time.Duration(*sess.Lifetime) * time.Second
		t = &term{own, fmt.Sprintf("its lifetime of %s is over", own)}
	}
	if l := shortest(limits, placeOf(sess)); l != nil {
		most := time.Duration(*l.MaxSessionLifetime) * time.Second
		if t == nil || most < t.lifetime {
			t = &term{most, fmt.Sprintf("policy %s of the %s %s allows a session to run for %s", l.Policy, l.Scope, l.Holder, most)}
		}
	}
	return t
}

// placeOf returns the place of a session for the limits.
func placeOf(sess *ent.Session) policy.Place {
	at := policy.Place{Domain: sess.DomainID, Project: sess.ProjectID, User: sess.OwnerID, Group: sess.ResourceGroupID}
	if sess.KeypairID != nil {
		at.Keypair = *sess.KeypairID
	}
	return at
}

// shortest returns the limit with the shortest lifetime.
func shortest(limits []policy.Limit, at policy.Place) (first *policy.Limit) {
	for i := range limits {
		l := &limits[i]
		if l.MaxSessionLifetime != nil && l.Binds(at) && (first == nil || *l.MaxSessionLifetime < *first.MaxSessionLifetime) {
			first = l
		}
	}
	return first
}

// endOverdue warns and ends running sessions whose own lifetime, or the one that the current
// policies allow, is over, until ctx ends.
func (s *Service) endOverdue(ctx context.Context, epoch int64) {
	for {
		next, err := s.endOlder(ctx, epoch)
		if err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Error("end sessions whose lifetime is over", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// endOlder checks once, and returns the time of the next check.
func (s *Service) endOlder(ctx context.Context, epoch int64) (time.Duration, error) {
	limits, err := s.Policies.All(ctx, s.Client)
	if err != nil {
		return passEvery, err
	}
	over := session.TerminationReasonLifetime
	limits = slices.DeleteFunc(limits, func(l policy.Limit) bool { return l.MaxSessionLifetime == nil })
	now, next := clock.Now(), passEvery
	running, err := s.Client.Session.Query().
		Where(session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Running), session.StartedAtNotNil(), nearEnd(limits, now.Add(passEvery))).All(ctx)
	if err != nil {
		return passEvery, fmt.Errorf("list running sessions: %w", err)
	}
	var soon []ending
	for _, sess := range running {
		t := termOf(limits, sess)
		if t == nil {
			continue
		}
		end := sess.StartedAt.Add(t.lifetime)
		warn := end.Add(-min(maxWarning, t.lifetime/10))
		switch {
		case now.Before(warn):
			next = min(next, max(warn.Sub(now), 100*time.Millisecond))
		case now.Before(end):
			next = min(next, max(end.Sub(now), 100*time.Millisecond))
			soon = append(soon, ending{sess, end, t})
		default:
			err := s.apply(ctx, epoch, sess, move.Move{To: lifecycle.Terminating, Phase: "run", Result: sessionevent.ResultInfo,
				Code: lived, Reason: &over, Message: t.why})
			if err != nil && !isAborted(err) {
				return passEvery, fmt.Errorf("end session %s: %w", sess.ID, err)
			}
		}
	}
	return next, s.warn(ctx, epoch, soon)
}

// nearEnd selects the sessions that may need a warning before a time. A warning comes after nine
// tenths of a session's lifetime at the earliest, and the lifetime is at least the smaller of its
// own and of the shortest limit of any policy.
func nearEnd(limits []policy.Limit, then time.Time) predicate.Session {
	var least policy.Limit
	for i, l := range limits {
		if i == 0 || *l.MaxSessionLifetime < *least.MaxSessionLifetime {
			least = l
		}
	}
	return func(q *sql.Selector) {
		q.Where(sql.P(func(b *sql.Builder) {
			b.WriteString(q.C(session.FieldStartedAt)).WriteString(" <= ").Arg(then).
				WriteString("::timestamptz - interval '0.9 second' * LEAST(").WriteString(q.C(session.FieldLifetime))
			if len(limits) > 0 {
				b.WriteString(", ").Arg(*least.MaxSessionLifetime).WriteString("::int")
			}
			b.WriteString(")")
		}))
	}
}

// ending is a session that ends soon.
type ending struct {
	*ent.Session
	at time.Time
	*term
}

// warn notifies the owners of sessions that end soon, once in each run.
func (s *Service) warn(ctx context.Context, epoch int64, soon []ending) error {
	if len(soon) == 0 {
		return nil
	}
	byID := map[uuid.UUID]ending{}
	var ids []uuid.UUID
	for _, e := range soon {
		byID[e.ID] = e
		ids = append(ids, e.ID)
	}
	told, err := s.Client.SessionEvent.Query().Where(sessionevent.SessionIDIn(ids...), sessionevent.Code(warned)).All(ctx)
	if err != nil {
		return fmt.Errorf("read earlier warnings: %w", err)
	}
	for _, e := range told {
		if !e.At.Before(*byID[e.SessionID].StartedAt) {
			delete(byID, e.SessionID)
		}
	}
	for id, e := range byID {
		text := fmt.Sprintf("it ends at %s: then %s", e.at.UTC().Format(time.RFC3339), e.why)
		err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
			if err := leader.Fence(ctx, tx, epoch); err != nil {
				return err
			}
			n, err := tx.Session.Update().Where(session.ID(id), session.StatusEQ(lifecycle.Running)).
				AddVersion(1).Save(ctx)
			if err != nil || n == 0 {
				return err
			}
			return history.Record(ctx, tx, history.Entry{Session: id, Phase: "run", From: &e.Status, To: e.Status,
				Result: sessionevent.ResultInfo, Attempt: e.Attempt, Code: warned, Message: text})
		})
		if err != nil {
			return fmt.Errorf("warn session %s: %w", id, err)
		}
		s.changed(ctx, id)
	}
	return nil
}

// waitedOut returns the sessions that wait for longer than their group allows. The time counts from
// when a session could first start: its creation, its start time, the success of its dependencies,
// or its return to the queue.
const waitedOut = `SELECT s.id, g.name, g.pending_timeout FROM sessions s JOIN resource_groups g ON g.id = s.resource_group_id
WHERE s.terminated_at IS NULL AND s.status = 'pending' AND g.pending_timeout > 0
  AND NOT EXISTS (SELECT FROM session_dependencies d WHERE d.session_id = s.id AND NOT d.satisfied)
  AND GREATEST(s.created_at, s.starts_at,
    (SELECT max(n.terminated_at) FROM session_dependencies d JOIN sessions n ON n.id = d.needed_id WHERE d.session_id = s.id),
    (SELECT max(e.at) FROM session_events e WHERE e.session_id = s.id AND e.to_status = 'pending' AND e.from_status <> 'pending')
  ) + g.pending_timeout * interval '1 second' <= $1
ORDER BY s.created_at, s.id LIMIT 500`

// cancelWaitedOut ends sessions that have waited for too long, until ctx ends.
func (s *Service) cancelWaitedOut(ctx context.Context, epoch int64) {
	tick := clock.NewTicker("pending timeout", passEvery)
	defer tick.Stop()
	for {
		if err := s.waitedOut(ctx, epoch); err != nil && ctx.Err() == nil && !isAborted(err) {
			s.Logger.Error("cancel sessions that waited for too long", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Service) waitedOut(ctx context.Context, epoch int64) error {
	rows, err := s.Client.QueryContext(ctx, waitedOut, clock.Now())
	if err != nil {
		return fmt.Errorf("find sessions that waited for too long: %w", err)
	}
	defer rows.Close()
	why := map[uuid.UUID]string{}
	for rows.Next() {
		var id uuid.UUID
		var group string
		var seconds int
		if err := rows.Scan(&id, &group, &seconds); err != nil {
			return fmt.Errorf("find sessions that waited for too long: %w", err)
		}
		why[id] = fmt.Sprintf("waited for %s, which is as long as the resource group %s allows", time.Duration(seconds)*time.Second, group)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("find sessions that waited for too long: %w", err)
	}
	rows.Close()
	reason := session.TerminationReasonPendingTimeout
	for id, text := range why {
		sess, err := s.Client.Session.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		if sess.Status != lifecycle.Pending {
			continue
		}
		err = s.apply(ctx, epoch, sess, move.Move{To: lifecycle.Cancelled, Phase: "schedule", Result: sessionevent.ResultExpired,
			Code: string(reason), Message: text, Reason: &reason, Outcome: session.ResultFailure})
		if err != nil && !isAborted(err) {
			return err
		}
	}
	return nil
}
