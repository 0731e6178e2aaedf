package chat

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/chatendpoint"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/viewer"
)

// votesOf counts the votes of a domain about each revision of a deployment, and each model of an endpoint.
const votesOf = `
SELECT COALESCE(a.asked->'model'->>'deployment', ''), COALESCE(a.asked->'model'->>'endpoint', ''), a.asked->'model'->>'name', COALESCE(a.answered_by, 0),
	COUNT(*) FILTER (WHERE v.winner = a.id), COUNT(*) FILTER (WHERE v.winner <> a.id), COUNT(*) FILTER (WHERE v.winner IS NULL)
FROM chat_votes v
JOIN chat_answers a ON a.turn_id = v.turn_id AND v.answers @> to_jsonb(a.id::text)
WHERE v.domain_id = $1 AND ($2 = '' OR a.asked->'model'->>'deployment' = $2)
GROUP BY 1, 2, 3, 4
ORDER BY 3, 4 DESC, 1, 2`

// Tallies returns the votes of the viewer's domain about the deployments and endpoints that they can see, or about one deployment.
func (s *Service) Tallies(ctx context.Context, only *uuid.UUID) ([]*Tally, error) {
	v := viewer.From(ctx)
	which := ""
	if only != nil {
		which = only.String()
	}
	all, err := s.count(ctx, v.Domain, which)
	if err != nil {
		return nil, err
	}
	var deployments, endpoints []uuid.UUID
	for _, t := range all {
		if t.Model.DeploymentID != nil {
			deployments = append(deployments, *t.Model.DeploymentID)
		} else if t.Model.EndpointID != nil {
			endpoints = append(endpoints, *t.Model.EndpointID)
		}
	}
	seen := map[uuid.UUID]bool{}
	if err := s.see(ctx, seen, deployments, endpoints); err != nil {
		return nil, err
	}
	out := []*Tally{}
	for _, t := range all {
		if d, e := t.Model.DeploymentID, t.Model.EndpointID; d != nil && seen[*d] || e != nil && seen[*e] {
			out = append(out, t)
		}
	}
	return out, nil
}

// see adds those of the deployments and endpoints that the viewer can see.
func (s *Service) see(ctx context.Context, seen map[uuid.UUID]bool, deployments, endpoints []uuid.UUID) error {
	var found []uuid.UUID
	if len(deployments) > 0 {
		ids, err := s.Client.Deployment.Query().Where(deployment.IDIn(deployments...)).IDs(ctx)
		if err != nil {
			return fmt.Errorf("read deployments: %w", err)
		}
		found = append(found, ids...)
	}
	if len(endpoints) > 0 {
		ids, err := s.Client.ChatEndpoint.Query().Where(chatendpoint.IDIn(endpoints...)).IDs(ctx)
		if err != nil {
			return fmt.Errorf("read endpoints: %w", err)
		}
		found = append(found, ids...)
	}
	for _, one := range found {
		seen[one] = true
	}
	return nil
}

func (s *Service) count(ctx context.Context, domain uuid.UUID, only string) ([]*Tally, error) {
	rows, err := s.Client.QueryContext(ctx, votesOf, domain, only)
	if err != nil {
		return nil, fmt.Errorf("count votes: %w", err)
	}
	defer rows.Close()
	var out []*Tally
	for rows.Next() {
		var deployed, outside string
		t, revision := &Tally{}, 0
		if err := rows.Scan(&deployed, &outside, &t.Model.Name, &revision, &t.Wins, &t.Losses, &t.Ties); err != nil {
			return nil, fmt.Errorf("count votes: %w", err)
		}
		t.Model = conversation.Model{Name: t.Model.Name, DeploymentID: parsed(deployed), EndpointID: parsed(outside)}
		if revision > 0 {
			t.Revision = &revision
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

func parsed(s string) *uuid.UUID {
	u, err := uuid.Parse(s)
	if err != nil {
		return nil
	}
	return &u
}
