package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

// checkPolicies finds the limits that bind a request; admit decides, where
// what waits can be counted.
func (s *Service) checkPolicies(ctx context.Context, v *viewer.Viewer, _ CreateSessionInput, w *wish) (err error) {
	if id.KindOf(v.Credential) == id.Keypair {
		w.keypair = &v.Credential
	}
	at := policy.Place{Domain: w.domain, Project: w.project, User: w.owner, Group: w.group}
	if w.keypair != nil {
		at.Keypair = *w.keypair
	}
	w.limits, err = s.Policies.Binding(ctx, at)
	return err
}

// admit refuses what a policy can never allow, and what is one too many to
// wait; what may fit later waits in the queue with that reason. All limits that
// stand in the way are named. Requests of one holder count one after the other.
func (s *Service) admit(ctx context.Context, tx *ent.Tx, w *wish) error {
	if len(w.limits) == 0 {
		return nil
	}
	var locks []string
	for _, l := range w.limits {
		if l.MaxPendingSessions != nil || len(l.PendingSlots) > 0 {
			holder := l.ScopeID
			if l.Scope == policy.ScopeKeypair {
				holder = l.Person
			}
			locks = append(locks, "pending "+holder.String())
		}
	}
	if err := store.Lock(ctx, tx, locks...); err != nil {
		return err
	}
	usage, err := s.Policies.Usage(ctx, tx, w.limits)
	if err != nil {
		return err
	}
	var reached []report.LimitReached
	for i := range w.limits {
		used, err := usage.Of(&w.limits[i])
		if err != nil {
			return err
		}
		if w.stored {
			used.Pending--
			used.PendingSlots.Sub(w.total())
		}
		reached = append(reached, w.limits[i].Refuses(policy.Ask{Slots: w.total(), Containers: w.kernels, Priority: w.priority}, used)...)
	}
	if len(reached) == 0 {
		return nil
	}
	var all []string
	for _, r := range reached {
		all = append(all, r.String())
	}
	return problem.Exhausted("%s", strings.Join(all, "; ")).WithField(fieldOf(reached[0].What)).WithLimit(reached[0].Limit).WithReached(reached)
}

// fieldOf is the field of the request that a limit is about.
func fieldOf(what string) string {
	switch {
	case what == "priority":
		return "priority"
	case what == "sessions" || what == "pending sessions":
		return "sessions"
	case what == "containers per session":
		return "kernels"
	}
	return "slots"
}

// endOverdue ends running sessions that are older than the policies allow, as
// these are now, until ctx ends.
func (s *Service) endOverdue(ctx context.Context, epoch int64) {
	for {
		next, err := s.endOlder(ctx, epoch)
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("end sessions at the end of their time", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// endOlder looks once, and says when to look again.
func (s *Service) endOlder(ctx context.Context, epoch int64) (time.Duration, error) {
	all, err := s.Policies.All(ctx, s.Client)
	if err != nil {
		return passEvery, err
	}
	all = slices.DeleteFunc(all, func(l policy.Limit) bool { return l.MaxSessionLifetime == nil })
	if len(all) == 0 {
		return passEvery, nil
	}
	running, err := s.Client.Session.Query().Where(session.StatusEQ(lifecycle.Running), session.StartedAtNotNil()).All(ctx)
	if err != nil {
		return passEvery, fmt.Errorf("list running sessions: %w", err)
	}
	next := passEvery
	for _, sess := range running {
		l := shortest(all, sess)
		if l == nil {
			continue
		}
		lifetime := time.Duration(*l.MaxSessionLifetime) * time.Second
		if left := time.Until(sess.StartedAt.Add(lifetime)); left > 0 {
			next = min(next, max(left, 100*time.Millisecond))
			continue
		}
		reason := session.TerminationReasonDeadlineExceeded
		err := s.apply(ctx, epoch, sess, move{to: lifecycle.Terminating, phase: "run", result: sessionevent.ResultInfo,
			code: "session_lifetime", reason: &reason,
			message: fmt.Sprintf("policy %s of the %s %s lets a session run for %s", l.Policy, l.Scope, l.Holder, lifetime)})
		if err != nil && !isAborted(err) {
			return passEvery, fmt.Errorf("end session %s: %w", sess.ID, err)
		}
	}
	return next, nil
}

// shortest is the limit that ends a session first.
func shortest(limits []policy.Limit, sess *ent.Session) (first *policy.Limit) {
	at := policy.Place{Domain: sess.DomainID, Project: sess.ProjectID, User: sess.OwnerID, Group: sess.ResourceGroupID}
	if sess.KeypairID != nil {
		at.Keypair = *sess.KeypairID
	}
	for i := range limits {
		if l := &limits[i]; l.Binds(at) && (first == nil || *l.MaxSessionLifetime < *first.MaxSessionLifetime) {
			first = l
		}
	}
	return first
}
