package deployment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentrevision"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/saved"
)

// StrategyOf returns the strategy of a row.
func StrategyOf(d *ent.Deployment) (*Strategy, error) {
	s, err := stored[Strategy](d.Strategy)
	return &s, err
}

// ScalingOf returns the scaling of a row.
func ScalingOf(d *ent.Deployment) (*Scaling, error) {
	s, err := stored[Scaling](d.Scaling)
	return &s, err
}

// TrafficOf returns the shares of the revisions, the oldest first.
func TrafficOf(d *ent.Deployment) []Traffic {
	out := make([]Traffic, 0, len(d.Weights))
	for _, n := range slices.Sorted(maps.Keys(d.Weights)) {
		out = append(out, Traffic{n, d.Weights[n]})
	}
	return out
}

// EngineOf returns how the engine of a revision is reached and checked.
func EngineOf(row *ent.DeploymentRevision) (*Engine, error) {
	e, err := stored[Engine](row.Engine)
	return &e, err
}

// Requests returns the requests of revisions that the viewer can see. Those who cannot change a deployment get no values of
// environment variables and no script.
func (s *Service) Requests(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*session.CreateSessionInput, error) {
	rows, err := s.Client.DeploymentRevision.Query().Where(deploymentrevision.IDIn(ids...)).WithDeployment().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read revisions: %w", err)
	}
	out := make(map[uuid.UUID]*session.CreateSessionInput, len(rows))
	for _, row := range rows {
		in, err := s.request(row)
		if err != nil {
			return nil, err
		}
		e, on, _ := permit.Of(row.Edges.Deployment)
		if !viewer.From(ctx).May(access.Update, e, on) {
			in = saved.Hide(in)
		}
		out[row.ID] = &in
	}
	return out, nil
}

// request returns the request of a row.
func (s *Service) request(row *ent.DeploymentRevision) (session.CreateSessionInput, error) {
	in, err := saved.Unpack(s.Keys, seal.RevisionSecrets, saved.Request{JSON: row.Request, Sealed: row.SecretsSealed})
	if err != nil {
		return in, fmt.Errorf("revision %s: %w", row.ID, err)
	}
	return in, nil
}
