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

// only are the agents outside of which the session may not run; nil is anywhere.
func (w *wish) only() []uuid.UUID {
	if w.strict {
		return w.agents
	}
	return nil
}

// checkAgents finds the agents that were asked for, and narrows the groups to
// theirs. To keep a session from all others is for who may change the agents.
func (s *Service) checkAgents(ctx context.Context, v *viewer.Viewer, in CreateSessionInput, w *wish) error {
	w.strict = in.StrictAgents != nil && *in.StrictAgents
	switch n := len(in.Agents); {
	case n == 0 && w.strict:
		return problem.Invalid("agents", "must name at least one agent while strictAgents is set")
	case n == 0:
		return nil
	case n > maxAgents:
		return problem.Invalid("agents", "has %d agents, which is too many", n).WithLimit(fmt.Sprint(maxAgents))
	}
	found, err := s.Client.Agent.Query().Where(agent.IDIn(in.Agents...), agent.ResourceGroupIDIn(w.groups...)).All(ctx)
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
		case w.strict && !v.May(access.Update, access.Agent, access.Object{ID: id}):
			return problem.Forbidden("only users who may change agent %s may set strictAgents for it; without strictAgents the agent is preferred", found[at].Name).WithField("strictAgents")
		}
		homes[found[at].ResourceGroupID] = true
	}
	w.agents = in.Agents
	w.groups = slices.DeleteFunc(w.groups, func(g uuid.UUID) bool { return !homes[g] })
	return nil
}
