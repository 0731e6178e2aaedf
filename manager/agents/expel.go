package agents

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// expel marks an agent as gone and revokes all certificates for its name: its tunnels to all
// managers close, and it can come back only with a new join token.
func (s *Service) expel(ctx context.Context, id uuid.UUID) (*AgentPayload, error) {
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
	err = store.InTx(viewer.SystemContext(ctx), s.Client, func(tx *ent.Tx) error {
		ctx := viewer.SystemContext(ctx)
		if err := tx.Agent.UpdateOneID(id).SetStatus(agent.StatusTerminated).Exec(ctx); err != nil {
			return fmt.Errorf("expel agent: %w", err)
		}
		return s.Enrolments.Revoke(ctx, tx, cluster.RoleAgent, a.Name)
	})
	if err != nil {
		return nil, err
	}
	s.Enrolments.Revoked(ctx)
	s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id})
	s.Bus.Publish(ctx, event.Event{Topic: event.Pending})
	if a, err = s.Client.Agent.Get(ctx, id); err != nil {
		return nil, fmt.Errorf("read agent: %w", err)
	}
	return &AgentPayload{Agent: a}, nil
}
