package scheduler

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/resourcegroup"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/slot"
)

// SuggestionKind is the part of a request that a suggestion changes.
type SuggestionKind string

// The kinds of suggestions.
const (
	SuggestSlots    SuggestionKind = "slots"
	SuggestGroup    SuggestionKind = "resource_group"
	SuggestAnyAgent SuggestionKind = "any_agent"
	SuggestEnd      SuggestionKind = "end_session"
)

// Suggestion is one change with which a session would start at once, as the
// planner found. It names nothing that the viewer may not see.
type Suggestion struct {
	Kind          SuggestionKind
	Text          string // one sentence
	Field         string // of the input, that changes
	From, To      string
	Slots         resource.Slots // all of them, once changed
	ResourceGroup *uuid.UUID
	Session       *uuid.UUID // that would have to end
}

const (
	// maxAdvised limits the sessions that one request gets suggestions for.
	maxAdvised = 10
	// maxOwn limits the viewer's running sessions that suggestions consider.
	maxOwn = 64
)

// Suggest finds changes that would let waiting sessions start at once.
func (a *Advisor) Suggest(ctx context.Context, sessions []uuid.UUID) (map[uuid.UUID][]*Suggestion, error) {
	v, err := a.view(ctx)
	if err != nil {
		return nil, err
	}
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(id uuid.UUID) bool { return v.places[id] == nil })
	if len(sessions) == 0 {
		return nil, nil
	}
	if len(sessions) > maxAdvised {
		return nil, problem.Invalid("suggestions", "may be asked for at most %d sessions at once", maxAdvised).WithLimit(fmt.Sprint(maxAdvised))
	}
	rows, err := a.client.Session.Query().Where(entsession.IDIn(sessions...)).WithImage().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	out := map[uuid.UUID][]*Suggestion{}
	for _, s := range rows {
		of := &session.Preview{Project: s.ProjectID, Domain: s.DomainID, Type: s.Type, Group: s.ResourceGroupID, Least: slot.Minimum(s.Edges.Image)}
		if out[s.ID], err = a.suggest(ctx, v.snap, s.ID, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// suggest finds changes that would let one of the pending requests start.
func (a *Advisor) suggest(ctx context.Context, snap *plan.Snapshot, id uuid.UUID, of *session.Preview) ([]*Suggestion, error) {
	i := slices.IndexFunc(snap.Pending, func(r plan.Request) bool { return r.SessionID == id })
	if i < 0 {
		return nil, nil
	}
	r := &snap.Pending[i]
	groups, err := a.sessions.Groups(ctx, of)
	if err != nil {
		return nil, err
	}
	names, err := a.names(ctx, groups)
	if err != nil {
		return nil, err
	}
	own, running, err := a.own(ctx, r.Group)
	if err != nil {
		return nil, err
	}
	var list []*Suggestion
	for _, x := range plan.Suggest(snap, id, plan.Alternatives{Groups: groups, Running: running, Least: of.Least}) {
		switch {
		case x.Slots != nil:
			list = append(list, fewerSlots(r, x.Slots))
		case x.Group != uuid.Nil:
			list = append(list, &Suggestion{
				Kind: SuggestGroup, Field: "resourceGroup", From: r.Group.String(), To: x.Group.String(), ResourceGroup: &x.Group,
				Text: fmt.Sprintf("In the resource group %s it would start now.", names[x.Group]),
			})
		case x.AnyAgent:
			list = append(list, &Suggestion{
				Kind: SuggestAnyAgent, Field: "strictAgents", From: "true", To: "false",
				Text: "If it may run on other agents too, it would start now.",
			})
		case x.End != uuid.Nil:
			list = append(list, &Suggestion{
				Kind: SuggestEnd, Session: &x.End, To: x.End.String(),
				Text: fmt.Sprintf("Once your session %s has ended, it would start.", own[x.End].Name),
			})
		}
	}
	return list, nil
}

// fewerSlots suggests smaller amounts of slots.
func fewerSlots(r *plan.Request, slots resource.Slots) *Suggestion {
	s := &Suggestion{Kind: SuggestSlots, Field: "slots", Slots: slots}
	asked := r.Kernels[0].Slots
	var less []string
	for _, name := range asked.Names() {
		if asked[name] != slots[name] {
			less = append(less, name)
		}
	}
	s.From, s.To = asked.String(), slots.String()
	if len(less) == 1 {
		s.Field, s.From, s.To = "slots."+less[0], resource.Format(less[0], asked[less[0]]), resource.Format(less[0], slots[less[0]])
	}
	s.Text = "With " + amounts(less, slots) + " instead of " + amounts(less, asked) + " it would start now."
	return s
}

// amounts lists some of the slots for people.
func amounts(names []string, slots resource.Slots) (text string) {
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += resource.ForPeople(name, slots[name]) + " " + name
	}
	return text
}

func (a *Advisor) names(ctx context.Context, groups []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := a.client.ResourceGroup.Query().Where(resourcegroup.IDIn(groups...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read resource groups: %w", err)
	}
	m := map[uuid.UUID]string{}
	for _, g := range rows {
		m[g.ID] = g.Name
	}
	return m, nil
}

// own finds the viewer's own running sessions in a group, newest first, and their
// allocations.
func (a *Advisor) own(ctx context.Context, group uuid.UUID) (map[uuid.UUID]*ent.Session, []plan.Running, error) {
	rows, err := a.client.Session.Query().
		Where(entsession.OwnerID(viewer.From(ctx).User), entsession.StatusEQ(lifecycle.Running), entsession.ResourceGroupID(group)).
		WithKernels(func(q *ent.KernelQuery) {
			q.Where(kernel.TerminatedAtIsNil()).WithAllocations(func(q *ent.AllocationQuery) { q.Where(allocation.FreedAtIsNil()) })
		}).
		Order(entsession.ByCreatedAt(sql.OrderDesc())).Limit(maxOwn).All(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read own sessions: %w", err)
	}
	byID := map[uuid.UUID]*ent.Session{}
	var list []plan.Running
	for _, s := range rows {
		byID[s.ID] = s
		x := plan.Running{SessionID: s.ID, Owner: s.OwnerID, Project: s.ProjectID, Domain: s.DomainID, Group: s.ResourceGroupID, Slots: resource.Slots{}}
		for _, k := range s.Edges.Kernels {
			for _, al := range k.Edges.Allocations {
				x.Holds = append(x.Holds, plan.Alloc{DeviceID: al.DeviceID, Slot: al.Slot, Amount: al.Amount})
				x.Slots[al.Slot] += al.Amount
			}
		}
		list = append(list, x)
	}
	return byID, list, nil
}
