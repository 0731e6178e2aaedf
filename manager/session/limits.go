package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
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

// checkDisk settles what each container may write on its machine: what is asked for,
// or the default where policies allow it. More than the default needs a policy that
// names more.
func (s *Service) checkDisk(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, w *wish) error {
	most, named := int64(0), false
	for _, l := range w.limits {
		if n := l.MaxDiskBytes; n != nil && (!named || *n < most) {
			most, named = *n, true
		}
	}
	if !named {
		most = policy.DefaultDiskBytes
	}
	w.diskBytes = min(policy.DefaultDiskBytes, most)
	if in.DiskBytes == nil {
		return nil
	}
	w.diskBytes = *in.DiskBytes
	if w.diskBytes < policy.MinDiskBytes {
		return problem.Invalid("diskBytes", "%s is below the minimum of %s", resource.FormatBytes(w.diskBytes), resource.FormatBytes(policy.MinDiskBytes)).
			WithLimit(fmt.Sprint(int64(policy.MinDiskBytes)))
	}
	if w.diskBytes > most && !named { // where one is named, admit says whose it is
		return problem.Exhausted("a session may have at most %s of disk unless a resource policy allows more", resource.FormatBytes(most)).
			WithField("diskBytes").WithLimit(fmt.Sprint(most))
	}
	return nil
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
	return policy.Ask{Slots: w.total(), Containers: w.kernels, Priority: w.priority, Disk: w.diskBytes}
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

// refused reports whether a limit would refuse it even if nothing was used.
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
	case what == policy.DiskBytes:
		return "diskBytes"
	case what == "containers per session":
		return "kernels"
	}
	return "slots"
}
