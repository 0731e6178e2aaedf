package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// only returns the agents to which the session is restricted; nil: it can run on any.
func (spec *sessionSpec) only() []uuid.UUID {
	if spec.strict {
		return spec.agents
	}
	return nil
}

// checkAgents finds the agents that the request names, and keeps only their resource
// groups. Only users who may change the agents can restrict a session to them.
func (s *Service) checkAgents(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, spec *sessionSpec) error {
	spec.strict = in.StrictAgents != nil && *in.StrictAgents
	switch n := len(in.Agents); {
	case n == 0 && spec.strict:
		return problem.Invalid("agents", "must name at least one agent while strictAgents is set")
	case n == 0:
		return nil
	case n > maxAgents:
		return problem.Invalid("agents", "has %d agents, which is too many", n).WithLimit(fmt.Sprint(maxAgents))
	}
	found, err := s.Client.Agent.Query().Where(agent.IDIn(in.Agents...), agent.ResourceGroupIDIn(spec.groups...)).All(ctx)
	if err != nil {
		return fmt.Errorf("find agents: %w", err)
	}
	homes := map[uuid.UUID]bool{}
	for i, id := range in.Agents {
		field := fmt.Sprintf("agents[%d]", i)
		at := slices.IndexFunc(found, func(a *ent.Agent) bool { return a.ID == id })
		switch {
		case slices.Contains(in.Agents[:i], id):
			return problem.Invalid(field, "is named twice")
		case at < 0:
			return problem.NotFound("agent in a resource group open to the session").WithField(field)
		case spec.strict && !v.May(access.Update, access.Agent, access.Object{ID: id}):
			return problem.Forbidden("only users who may change agent %s may set strictAgents for it; without strictAgents the agent is preferred", found[at].Name).WithField("strictAgents")
		}
		homes[found[at].ResourceGroupID] = true
	}
	spec.agents = in.Agents
	spec.groups = slices.DeleteFunc(spec.groups, func(g uuid.UUID) bool { return !homes[g] })
	return nil
}
