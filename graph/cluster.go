package graph

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/slottype"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/group"
	"github.com/berthhq/berth/manager/vfolder"
)

func (r queryResolver) ResourceGroups(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ResourceGroupOrder, where *ent.ResourceGroupWhereInput) (*ent.ResourceGroupConnection, error) {
	return r.Client.ResourceGroup.Query().Paginate(ctx, after, first, before, last, ent.WithResourceGroupOrder(orderBy), ent.WithResourceGroupFilter(where.Filter))
}

func (r queryResolver) Agents(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.AgentOrder, where *ent.AgentWhereInput) (*ent.AgentConnection, error) {
	return r.Client.Agent.Query().Paginate(ctx, after, first, before, last, ent.WithAgentOrder(orderBy), ent.WithAgentFilter(where.Filter))
}

func (r queryResolver) SlotTypes(ctx context.Context) ([]*ent.SlotType, error) {
	return r.Client.SlotType.Query().Order(slottype.ByName()).All(ctx)
}

// Capacity returns the sum over the allocatable devices. Slots that exclude each other, and
// slots that are names of the same capacity, each count in full, because they are ways to use
// the same devices.
func (r agentResolver) Capacity(ctx context.Context, a *ent.Agent) (resource.Slots, error) {
	devices, err := loaders(ctx).devices.Load(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	sum := resource.Slots{}
	for _, d := range devices {
		if d.Allocatable {
			sum.Add(d.Capacity)
		}
	}
	return sum, nil
}

func (r agentResolver) Occupied(ctx context.Context, a *ent.Agent) (resource.Slots, error) {
	return loaders(ctx).byAgent.Load(ctx, a.ID)
}

func (r agentResolver) Stats(ctx context.Context, a *ent.Agent) ([]*report.Metric, error) {
	st, err := loaders(ctx).stats.Load(ctx, a.ID)
	return pointers(st.Metrics), err
}

// StatsAt is nil until the agent has measured.
func (r agentResolver) StatsAt(ctx context.Context, a *ent.Agent) (*time.Time, error) {
	st, err := loaders(ctx).stats.Load(ctx, a.ID)
	if err != nil || st.At.IsZero() {
		return nil, err
	}
	return &st.At, nil
}

func (r allocationResolver) Amount(_ context.Context, a *ent.Allocation) (string, error) {
	return resource.Format(a.Slot, a.Amount), nil
}

func (r mutationResolver) CreateResourceGroup(ctx context.Context, input group.CreateResourceGroupInput) (*group.ResourceGroupPayload, error) {
	return r.Groups.CreateResourceGroup(ctx, input)
}

func (r mutationResolver) UpdateResourceGroup(ctx context.Context, input group.UpdateResourceGroupInput) (*group.ResourceGroupPayload, error) {
	return r.Groups.UpdateResourceGroup(ctx, input)
}

func (r mutationResolver) DeleteResourceGroup(ctx context.Context, input group.DeleteResourceGroupInput) (*group.DeleteResourceGroupPayload, error) {
	return r.Groups.DeleteResourceGroup(ctx, input)
}

func (r mutationResolver) GrantResourceGroup(ctx context.Context, input group.GrantResourceGroupInput) (*group.ResourceGroupPayload, error) {
	return r.Groups.GrantResourceGroup(ctx, input)
}

func (r mutationResolver) RevokeResourceGroup(ctx context.Context, input group.RevokeResourceGroupInput) (*group.ResourceGroupPayload, error) {
	return r.Groups.RevokeResourceGroup(ctx, input)
}

func (r mutationResolver) UpdateAgent(ctx context.Context, input agents.UpdateAgentInput) (*agents.AgentPayload, error) {
	return r.Agents.UpdateAgent(ctx, input)
}

func (r mutationResolver) CreateJoinToken(ctx context.Context, input agents.CreateJoinTokenInput) (*agents.JoinTokenPayload, error) {
	return r.Agents.CreateJoinToken(ctx, input)
}

func (r mutationResolver) DeleteStorageProxy(ctx context.Context, input vfolder.DeleteStorageProxyInput) (*vfolder.DeleteStorageProxyPayload, error) {
	return r.Folders.DeleteStorageProxy(ctx, input)
}

// AgentChanged sends every visible agent, then those that change.
func (r subscriptionResolver) AgentChanged(ctx context.Context, id *uuid.UUID) (<-chan *ent.Agent, error) {
	find := func(ctx context.Context, where ...predicate.Agent) ([]*ent.Agent, error) {
		q, err := r.Client.Agent.Query().Where(where...).Limit(maxFeed).CollectFields(ctx, "Agent", "Node")
		if err != nil {
			return nil, err
		}
		return q.All(ctx)
	}
	f := feed[*ent.Agent]{
		topic: event.Agent, id: id, every: time.Second, // every heartbeat is an event
		first: func(ctx context.Context) ([]*ent.Agent, error) { return find(ctx) },
		read: func(ctx context.Context, ids []uuid.UUID) ([]*ent.Agent, error) {
			return find(ctx, agent.IDIn(ids...))
		},
	}
	if id != nil {
		f.first = func(ctx context.Context) ([]*ent.Agent, error) { return named(ctx, find, "agent", agent.ID(*id)) }
	}
	return follow(ctx, r.Resolver, f)
}
