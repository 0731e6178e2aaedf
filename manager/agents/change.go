package agents

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

const (
	maxReason = 200 // characters
	// maxDrain is the latest deadline of a drain.
	maxDrain = 30 * 24 * time.Hour
)

// UpdateAgent cordons or uncordons an agent, or moves it to another resource group. Sessions
// belong to the group of their agents, so an agent with sessions cannot be moved.
func (s *Service) UpdateAgent(ctx context.Context, in UpdateAgentInput) (*AgentPayload, error) {
	return s.change(ctx, in.ID, func(tx *ent.Tx, a *ent.Agent, u *ent.AgentUpdateOne) error {
		if in.CordonReason != nil {
			if in.Schedulable == nil || *in.Schedulable {
				return problem.Invalid("cordonReason", "can only be set together with schedulable: false")
			}
			if err := naming.Line("cordonReason", *in.CordonReason, maxReason); err != nil {
				return err
			}
		}
		if in.Schedulable != nil {
			if a.DrainAction != nil {
				return problem.Precondition("agent %s is being drained; undrain it first", a.Name).WithField("schedulable")
			}
			u.SetSchedulable(*in.Schedulable).SetCordonReason(value(in.CordonReason))
		}
		if in.ResourceGroup != nil {
			if err := s.groupExists(ctx, *in.ResourceGroup); err != nil {
				return err
			}
			if force := in.Force != nil && *in.Force; !force && *in.ResourceGroup != a.ResourceGroupID {
				if err := s.vacant(ctx, tx, a); err != nil {
					return err
				}
			}
			u.SetResourceGroupID(*in.ResourceGroup)
		}
		return nil
	})
}

// DrainAgent cordons an agent. The leader notifies the owners of its sessions, and performs
// the action at the deadline.
func (s *Service) DrainAgent(ctx context.Context, in DrainAgentInput) (*AgentPayload, error) {
	return s.change(ctx, in.ID, func(_ *ent.Tx, _ *ent.Agent, u *ent.AgentUpdateOne) error {
		deadline, err := in.at(clock.Now())
		if err != nil {
			return err
		}
		if err := naming.Line("reason", value(in.Reason), maxReason); err != nil {
			return err
		}
		u.SetSchedulable(false).SetCordonReason(value(in.Reason)).SetDrainDeadline(deadline).SetDrainAction(in.Action)
		return nil
	})
}

// vacant returns an error if sessions of the agent's group have allocations on it. The lock
// makes a placement, which reads agents FOR KEY SHARE, happen before the move or after it.
func (s *Service) vacant(ctx context.Context, tx *ent.Tx, a *ent.Agent) error {
	if _, err := tx.Agent.Query().Where(agent.ID(a.ID)).ForUpdate().OnlyID(ctx); err != nil {
		return permit.Missing(err, "agent", "id")
	}
	left, err := sessionsLeft(ctx, tx.Client(), a.ID)
	if err != nil || left[a.ID] == 0 {
		return err
	}
	return problem.Precondition("sessions that run on agent %s: %d; drain the agent first, or use force to leave them in their resource group", a.Name, left[a.ID]).
		WithField("resourceGroup")
}

// at returns the deadline of the drain.
func (in *DrainAgentInput) at(now time.Time) (time.Time, error) {
	switch {
	case (in.Deadline == nil) == (in.After == nil):
		return now, problem.Invalid("deadline", "must not be combined with after")
	case in.After != nil && (*in.After < 0 || time.Duration(*in.After)*time.Second > maxDrain):
		return now, problem.Invalid("after", "must be 0 to %d seconds", int(maxDrain.Seconds())).WithLimit(fmt.Sprintf("0..%d", int(maxDrain.Seconds())))
	case in.After != nil:
		return now.Add(time.Duration(*in.After) * time.Second), nil
	case in.Deadline.Before(now) || in.Deadline.After(now.Add(maxDrain)):
		return now, problem.Invalid("deadline", "must be in the future, at most 30 days ahead").WithLimit(now.Add(maxDrain).Format(time.RFC3339))
	}
	return in.Deadline.UTC().Truncate(time.Microsecond), nil
}

// UndrainAgent ends a drain.
func (s *Service) UndrainAgent(ctx context.Context, in UndrainAgentInput) (*AgentPayload, error) {
	return s.change(ctx, in.ID, func(_ *ent.Tx, a *ent.Agent, u *ent.AgentUpdateOne) error {
		if a.DrainAction == nil {
			return problem.Precondition("agent %s is not being drained", a.Name).WithField("id")
		}
		u.SetSchedulable(true).SetCordonReason("").ClearDrainDeadline().ClearDrainAction()
		return nil
	})
}

// DeleteAgent marks an unreachable agent as gone, or expels any agent.
func (s *Service) DeleteAgent(ctx context.Context, in DeleteAgentInput) (*AgentPayload, error) {
	if in.Expel != nil && *in.Expel {
		return s.expel(ctx, in.ID)
	}
	return s.change(ctx, in.ID, func(_ *ent.Tx, a *ent.Agent, u *ent.AgentUpdateOne) error {
		if a.Status == agent.StatusAlive {
			return problem.Precondition("agent %s is alive; drain it and stop it first", a.Name).WithField("id")
		}
		u.SetStatus(agent.StatusTerminated)
		return nil
	})
}

// change updates an agent that the viewer can change.
func (s *Service) change(ctx context.Context, id uuid.UUID, set func(*ent.Tx, *ent.Agent, *ent.AgentUpdateOne) error) (*AgentPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	a, err := s.Client.Agent.Get(ctx, id)
	if err != nil {
		return nil, permit.Missing(err, "agent", "id")
	}
	if err := permit.To(ctx, access.Update, a); err != nil {
		return nil, err
	}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		// The condition repeats the status that was read, because the agent may reconnect or
		// be drained by another request meanwhile.
		u := tx.Agent.UpdateOneID(id).Where(agent.StatusEQ(a.Status))
		if a.DrainAction == nil {
			u.Where(agent.DrainActionIsNil())
		}
		if err := set(tx, a, u); err != nil {
			return err
		}
		a, err = u.Save(ctx)
		return err
	})
	if ent.IsNotFound(err) {
		return nil, problem.Aborted("another request has just changed the agent; reload it and try again")
	}
	if err != nil {
		return nil, fmt.Errorf("change agent: %w", err)
	}
	a = a.Unwrap()
	s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id})
	s.Bus.Publish(ctx, event.Event{Topic: event.Pending})
	return &AgentPayload{Agent: a}, nil
}

func (s *Service) groupExists(ctx context.Context, id uuid.UUID) error {
	ok, err := s.Client.ResourceGroup.Query().Where(resourcegroup.ID(id)).Exist(ctx)
	if err == nil && !ok {
		return problem.NotFound("resource group").WithField("resourceGroup")
	}
	return err
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// SessionsLeft counts the sessions with allocations on each of the agents.
func (s *Service) SessionsLeft(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]int, error) {
	return sessionsLeft(ctx, s.Client, ids...)
}

func sessionsLeft(ctx context.Context, client *ent.Client, ids ...uuid.UUID) (map[uuid.UUID]int, error) {
	var rows []struct {
		Agent uuid.UUID `json:"agent"`
		Count int       `json:"count"`
	}
	err := client.Kernel.Query().Where(kernel.AgentIDIn(ids...), kernel.TerminatedAtIsNil()).Modify(func(k *sql.Selector) {
		k.Select(sql.As(k.C(kernel.FieldAgentID), "agent"), sql.As("COUNT(DISTINCT "+k.C(kernel.FieldSessionID)+")", "count")).
			GroupBy(k.C(kernel.FieldAgentID))
	}).Scan(viewer.SystemContext(ctx), &rows)
	if err != nil {
		return nil, fmt.Errorf("count sessions on agents: %w", err)
	}
	counts := make(map[uuid.UUID]int, len(rows))
	for _, r := range rows {
		counts[r.Agent] = r.Count
	}
	return counts, nil
}
