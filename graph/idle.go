package graph

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/session"
)

func (r queryResolver) IdleCheckers(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.IdleCheckerOrder, where *ent.IdleCheckerWhereInput) (*ent.IdleCheckerConnection, error) {
	return r.Client.IdleChecker.Query().Paginate(ctx, after, first, before, last, ent.WithIdleCheckerOrder(orderBy), ent.WithIdleCheckerFilter(where.Filter))
}

func (r queryResolver) IdleDryRun(ctx context.Context, checker *uuid.UUID, input *idle.CreateIdleCheckerInput, domain, project, resourceGroup *uuid.UUID) (*idle.Trial, error) {
	return r.Idle.IdleDryRun(ctx, checker, input, domain, project, resourceGroup)
}

// Thresholds are ordered by the name of the slot.
func (r idleCheckerResolver) Thresholds(_ context.Context, c *ent.IdleChecker) ([]*idle.Threshold, error) {
	list := make([]*idle.Threshold, 0, len(c.Thresholds))
	for _, slot := range slices.Sorted(maps.Keys(c.Thresholds)) {
		list = append(list, &idle.Threshold{Slot: slot, Percent: c.Thresholds[slot]})
	}
	return list, nil
}

// Everywhere is true for a binding to all sessions, as opposed to a binding to an object that
// the viewer cannot see.
func (r idleBindingResolver) Everywhere(_ context.Context, b *ent.IdleBinding) (bool, error) {
	return b.DomainID == nil && b.ProjectID == nil && b.ResourceGroupID == nil, nil
}

func (r mutationResolver) CreateIdleChecker(ctx context.Context, input idle.CreateIdleCheckerInput) (*idle.IdleCheckerPayload, error) {
	return r.Idle.CreateIdleChecker(ctx, input)
}

func (r mutationResolver) UpdateIdleChecker(ctx context.Context, input idle.UpdateIdleCheckerInput) (*idle.IdleCheckerPayload, error) {
	return r.Idle.UpdateIdleChecker(ctx, input)
}

func (r mutationResolver) DeleteIdleChecker(ctx context.Context, input idle.DeleteIdleCheckerInput) (*idle.DeleteIdleCheckerPayload, error) {
	return r.Idle.DeleteIdleChecker(ctx, input)
}

func (r mutationResolver) AttachIdleChecker(ctx context.Context, input idle.AttachIdleCheckerInput) (*idle.IdleCheckerPayload, error) {
	return r.Idle.AttachIdleChecker(ctx, input)
}

func (r mutationResolver) DetachIdleChecker(ctx context.Context, input idle.DetachIdleCheckerInput) (*idle.IdleCheckerPayload, error) {
	return r.Idle.DetachIdleChecker(ctx, input)
}

func (r mutationResolver) SetSessionIdleExempt(ctx context.Context, input session.SetSessionIdleExemptInput) (*session.SessionPayload, error) {
	return r.Resolver.Sessions.SetSessionIdleExempt(ctx, input)
}
