package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/occupancy"
)

func (r agentResolver) SessionsLeft(ctx context.Context, a *ent.Agent) (int, error) {
	return loaders(ctx).left.Load(ctx, a.ID)
}

func (r agentResolver) Drained(ctx context.Context, a *ent.Agent) (bool, error) {
	if a.DrainAction == nil {
		return false, nil
	}
	n, err := loaders(ctx).left.Load(ctx, a.ID)
	return n == 0, err
}

func (r mutationResolver) DrainAgent(ctx context.Context, input agents.DrainAgentInput) (*agents.AgentPayload, error) {
	return r.Agents.DrainAgent(ctx, input)
}

func (r mutationResolver) UndrainAgent(ctx context.Context, input agents.UndrainAgentInput) (*agents.AgentPayload, error) {
	return r.Agents.UndrainAgent(ctx, input)
}

func (r mutationResolver) DeleteAgent(ctx context.Context, input agents.DeleteAgentInput) (*agents.AgentPayload, error) {
	return r.Agents.DeleteAgent(ctx, input)
}

func (r mutationResolver) RestartPlugin(ctx context.Context, input agents.RestartPluginInput) (*agents.AgentPayload, error) {
	return r.Agents.RestartPlugin(ctx, input)
}

func (r queryResolver) OccupancyAudit(ctx context.Context) (*occupancy.Audit, error) {
	return r.Occupancy.Look(ctx)
}

func (r mutationResolver) AuditOccupancy(ctx context.Context) (*occupancy.AuditPayload, error) {
	return r.Occupancy.AuditOccupancy(ctx)
}
