package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
)

// Choose returns the first of the groups where some agent could serve the request
// if everything were free. Where none has agents it is the first, as some may join;
// else what no agent could ever serve is refused, as the first group with agents
// puts it.
func (s *Scheduler) Choose(ctx context.Context, groups []uuid.UUID, n session.Need) (uuid.UUID, error) {
	ctx = viewer.SystemContext(ctx)
	r := plan.Request{
		Architecture: n.Architecture, Kernels: slices.Repeat([]plan.KernelRequest{{Slots: n.Slots}}, n.Kernels), Agents: n.Only, Strict: len(n.Only) > 0,
	}
	asked := fmt.Sprint(groups, n)
	age := rosterAge
	if len(groups) > 1 {
		age = 0 // an agent that has just left a group must not lead there
	} else if group, ok := s.roster.known(asked); ok {
		return group, nil
	}
	snap, err := s.roster.get(ctx, s, age)
	if err != nil {
		return uuid.Nil, err
	}
	if group, never := choose(snap, groups, r); len(never) == 0 && peopled(snap, group) {
		s.roster.note(snap, asked, group)
		return group, nil
	}
	if snap, err = s.roster.get(ctx, s, 0); err != nil {
		return uuid.Nil, err
	}
	group, never := choose(snap, groups, r)
	if len(never) > 0 {
		return uuid.Nil, problem.Invalid(never[0].Field, "%s", never[0].Reason).WithLimit(never[0].Limit)
	}
	return group, nil
}

// rosterAge is how old the agents may be that a request is compared with. Those
// that may have joined meanwhile are looked for before anything is refused.
const rosterAge = 2 * time.Second

// roster is the agents as they were a moment ago, for requests that only ask
// what they could ever get.
type roster struct {
	mu   sync.Mutex
	snap *plan.Snapshot
	read time.Time
	fits map[string]uuid.UUID // what was found to fit, by request
}

// known returns the group that was found for the same request a moment ago.
func (r *roster) known(asked string) (uuid.UUID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) >= rosterAge {
		return uuid.Nil, false
	}
	group, ok := r.fits[asked]
	return group, ok
}

// note remembers what was found among the agents of snap.
func (r *roster) note(snap *plan.Snapshot, asked string, group uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snap == snap {
		r.fits[asked] = group
	}
}

// get returns agents not older than age. Who comes while they are read waits
// for that, rather than reading too.
func (r *roster) get(ctx context.Context, s *Scheduler, age time.Duration) (*plan.Snapshot, error) {
	asked := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snap != nil && asked.Sub(r.read) < age {
		return r.snap, nil
	}
	begun, snap := time.Now(), &plan.Snapshot{}
	if err := s.readSplits(ctx, snap); err != nil {
		return nil, fmt.Errorf("read resource groups: %w", err)
	}
	if err := s.readAgents(ctx, snap); err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	if err := s.readSlotTypes(ctx, snap); err != nil {
		return nil, fmt.Errorf("read slot types: %w", err)
	}
	r.snap, r.read, r.fits = snap, begun, map[string]uuid.UUID{}
	return snap, nil
}

// readSplits reads what matters of groups for what their agents could ever give.
func (s *Scheduler) readSplits(ctx context.Context, snap *plan.Snapshot) error {
	groups, err := s.client.ResourceGroup.Query().Select(resourcegroup.FieldID, resourcegroup.FieldSplit).All(ctx)
	for _, g := range groups {
		snap.Groups = append(snap.Groups, plan.Group{ID: g.ID, Split: plan.Split(g.Split)})
	}
	return err
}

// peopled tells whether a group has agents.
func peopled(snap *plan.Snapshot, group uuid.UUID) bool {
	return slices.ContainsFunc(snap.Agents, func(a plan.Agent) bool { return a.Group == group })
}

func choose(snap *plan.Snapshot, groups []uuid.UUID, r plan.Request) (group uuid.UUID, refused []plan.Impossible) {
	for _, g := range groups {
		r.Group = g
		never := plan.CanEver(snap, &r)
		switch {
		case len(never) > 0 && refused == nil:
			refused = never
		case len(never) > 0:
		case peopled(snap, g):
			return g, nil
		case group == uuid.Nil:
			group = g
		}
	}
	return group, refused
}
