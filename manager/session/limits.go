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

// checkPolicies finds the limits and budgets that apply to a request. admit compares them with the
// usage later, under a lock.
func (s *Service) checkPolicies(ctx context.Context, v *viewer.Viewer, _ CreateSessionInput, spec *sessionSpec) (err error) {
	if id.KindOf(v.Credential) == id.Keypair {
		spec.keypair = &v.Credential
	}
	at := policy.Place{Domain: spec.domain, Project: spec.project, User: spec.owner, Group: spec.group}
	if spec.keypair != nil {
		at.Keypair = *spec.keypair
	}
	if s.Budgets != nil {
		if spec.budgets, err = s.Budgets.Binding(ctx, at); err != nil {
			return err
		}
	}
	spec.limits, err = s.Policies.Binding(ctx, at)
	return err
}

// checkDisk sets how much each container can write on its machine: the requested amount, or the
// default if policies allow it. More than the default requires a policy that allows it.
func (s *Service) checkDisk(_ context.Context, _ *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	most, named := int64(0), false
	for _, l := range spec.limits {
		if n := l.MaxDiskBytes; n != nil && (!named || *n < most) {
			most, named = *n, true
		}
	}
	if !named {
		most = policy.DefaultDiskBytes
	}
	spec.diskBytes = min(policy.DefaultDiskBytes, most)
	if in.DiskBytes == nil {
		return nil
	}
	spec.diskBytes = *in.DiskBytes
	if spec.diskBytes < policy.MinDiskBytes {
		return problem.Invalid("diskBytes", "%s is below the minimum of %s", resource.FormatBytes(spec.diskBytes), resource.FormatBytes(policy.MinDiskBytes)).
			WithLimit(fmt.Sprint(int64(policy.MinDiskBytes)))
	}
	if spec.diskBytes > most && !named { // admit names the policy if there is one
		return problem.Exhausted("a session may have at most %s of disk unless a resource policy allows more", resource.FormatBytes(most)).
			WithField("diskBytes").WithLimit(fmt.Sprint(most))
	}
	return nil
}

// admit refuses a session that a policy can never allow, or that would exceed a limit of
// pending sessions, and names all limits that it exceeds. A session that fits later waits
// in the queue with that reason. Requests of one user, project or domain are counted one
// after the other. Then it refuses a session that exceeds a budget.
func (s *Service) admit(ctx context.Context, tx *ent.Tx, spec *sessionSpec) error {
	if err := s.allow(ctx, tx, spec); err != nil {
		return err
	}
	return s.afford(ctx, tx, spec)
}

// allow is the part of admit about policies.
func (s *Service) allow(ctx context.Context, tx *ent.Tx, spec *sessionSpec) error {
	if len(spec.limits) == 0 {
		return nil
	}
	locks := spec.locks()
	if len(locks) == 0 && !spec.refused() {
		return nil
	}
	if err := store.Lock(ctx, tx, locks...); err != nil {
		return err
	}
	usage, err := s.Policies.Usage(ctx, tx, spec.limits)
	if err != nil {
		return err
	}
	var reached []report.LimitReached
	for i := range spec.limits {
		used, err := usage.Of(&spec.limits[i])
		if err != nil {
			return err
		}
		if spec.stored {
			used.Pending--
			used.PendingSlots.Sub(spec.total())
		}
		reached = append(reached, spec.limits[i].Refuses(spec.ask(), used)...)
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

func (spec *sessionSpec) ask() policy.Ask {
	return policy.Ask{Sessions: spec.member.count(), Slots: spec.total(), Containers: spec.kernels, Priority: spec.priority, Disk: spec.diskBytes}
}

// locks returns the names of the locks that counting the usage needs.
func (spec *sessionSpec) locks() (list []string) {
	for _, l := range spec.limits {
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

// refused reports whether a limit would refuse the session even without other usage.
func (spec *sessionSpec) refused() bool {
	return slices.ContainsFunc(spec.limits, func(l policy.Limit) bool { return len(l.Refuses(spec.ask(), policy.Used{})) > 0 })
}

// fieldOf returns the field of the request that a limit is about.
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
