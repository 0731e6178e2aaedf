package graph

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionuse"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/capacity"
	"github.com/berthhq/berth/manager/stats"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/waste"
)

// WaitReport returns percentiles of the starts that the viewer can see, or of all of a resource group.
func (r queryResolver) WaitReport(ctx context.Context, input stats.WaitReportInput) ([]*stats.WaitRow, error) {
	rows, err := stats.Waits(ctx, r.Client, input)
	return pointers(rows), err
}

// Waste returns a report of sessions, users or machines that use less than they have.
func (r queryResolver) Waste(ctx context.Context, input waste.WasteInput) ([]*waste.WasteRow, error) {
	rows, err := waste.Read(ctx, r.Client, input)
	return pointers(rows), err
}

// CapacityReport divides capacity times time.
func (r queryResolver) CapacityReport(ctx context.Context, input capacity.CapacityReportInput) (*capacity.CapacityReport, error) {
	return capacity.Report(ctx, r.Client, input)
}

func (r sessionResolver) Use(ctx context.Context, s *ent.Session) ([]*ent.SessionUse, error) {
	list, err := loaders(ctx).uses.Load(ctx, s.ID)
	if list == nil {
		list = []*ent.SessionUse{}
	}
	return list, err
}

// SuggestedSlots returns the request with the suggested amounts.
func (r sessionResolver) SuggestedSlots(ctx context.Context, s *ent.Session) (resource.Slots, error) {
	list, err := loaders(ctx).uses.Load(ctx, s.ID)
	return suggested(s.Slots, list), err
}

// suggested returns slots with the suggestions, or nil without one.
func suggested(asked resource.Slots, uses []*ent.SessionUse) resource.Slots {
	var out resource.Slots
	for _, u := range uses {
		if u.Suggested == nil {
			continue
		}
		if out == nil {
			out = asked.Clone()
		}
		out[u.Slot] = *u.Suggested
	}
	return out
}

func (r *Resolver) loadUses(ctx context.Context, sessions []uuid.UUID) (map[uuid.UUID][]*ent.SessionUse, error) {
	list, err := r.Client.SessionUse.Query().Where(func(s *sql.Selector) { s.Where(store.In(s.C(sessionuse.FieldSessionID), sessions)) }).
		Order(sessionuse.ByMetric()).All(ctx)
	if err != nil {
		return nil, err
	}
	out := map[uuid.UUID][]*ent.SessionUse{}
	for _, u := range list {
		out[u.SessionID] = append(out[u.SessionID], u)
	}
	return out, nil
}

// advised limits the sessions that are looked at for an advice.
const advised = 20

// SizeAdvice looks at the newest ended sessions of the viewer, those with the name first.
func (r queryResolver) SizeAdvice(ctx context.Context, image uuid.UUID, name *string) (*model.SizeAdvice, error) {
	base := func() *ent.SessionQuery {
		return r.Client.Session.Query().Where(session.ImageID(image), session.OwnerID(viewer.From(ctx).User), session.TerminatedAtNotNil()).
			Order(session.ByCreatedAt(sql.OrderDesc())).Limit(advised)
	}
	var list []*ent.Session
	if name != nil && *name != "" {
		named, err := base().Where(session.Name(*name)).All(ctx)
		if err != nil {
			return nil, err
		}
		list = named
	}
	all, err := base().All(ctx)
	if err != nil {
		return nil, err
	}
	list = append(list, all...)
	var ids []uuid.UUID
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	uses, err := r.loadUses(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if slots := suggested(s.Slots, uses[s.ID]); slots != nil && slots.String() != s.Slots.String() {
			return &model.SizeAdvice{Session: *s, Asked: s.Slots, Suggested: slots}, nil
		}
	}
	return nil, nil
}
