package session

import (
	"context"
	"slices"
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
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
	locks := w.locks()
	if len(locks) == 0 && !w.refused() {
		return nil
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
		reached = append(reached, w.limits[i].Refuses(w.ask(), used)...)
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

func (w *wish) ask() policy.Ask {
	return policy.Ask{Slots: w.total(), Containers: w.kernels, Priority: w.priority}
}

// locks names those whose requests are counted one after the other.
func (w *wish) locks() (list []string) {
	for _, l := range w.limits {
		if l.MaxPendingSessions != nil || len(l.PendingSlots) > 0 {
			holder := l.ScopeID
			if l.Scope == policy.ScopeKeypair {
				holder = l.Person
			}
			list = append(list, "pending "+holder.String())
		}
	}
	return list
}

// refused tells whether a limit would refuse it even if nothing was used.
func (w *wish) refused() bool {
	return slices.ContainsFunc(w.limits, func(l policy.Limit) bool { return len(l.Refuses(w.ask(), policy.Used{})) > 0 })
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
