package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Scope is what a policy is attached to.
type Scope string

// The scopes; all of them bind at once.
const (
	ScopeDomain  Scope = "domain"
	ScopeProject Scope = "project"
	ScopeUser    Scope = "user"
)

// Limit is a policy at the place where it is attached. Nil, and a slot that is
// not named, mean no limit.
type Limit struct {
	Scope              Scope
	ScopeID            uuid.UUID
	Policy             string // its name, for messages
	TotalSlots         resource.Slots
	MaxSessions        *int
	MaxPendingSessions *int
	MaxVfolders        *int
	MaxScopeBytes      *int64
}

// attached lists every policy with its holder. Callers narrow it by holder.
const attached = `
SELECT CASE WHEN a.domain_id IS NOT NULL THEN 'domain' WHEN a.project_id IS NOT NULL THEN 'project' ELSE 'user' END AS scope,
  coalesce(a.domain_id, a.project_id, a.user_id) AS holder,
  p.name, p.total_slots, p.max_sessions, p.max_pending_sessions, p.max_vfolders, p.max_scope_bytes
FROM policy_attachments a JOIN resource_policies p ON p.id = a.policy_id
WHERE a.keypair_id IS NULL AND a.within_project_id IS NULL AND a.resource_group_id IS NULL`

// Limits returns the policies that bind what a user does in a project of a
// domain, in one statement. They are facts for decisions, so no viewer narrows them.
func (s *Service) Limits(ctx context.Context, domain, project, user uuid.UUID) ([]Limit, error) {
	return s.query(ctx, attached+" AND coalesce(a.domain_id, a.project_id, a.user_id) IN ($1, $2, $3) ORDER BY scope", domain, project, user)
}

// All returns every attached policy in one statement, for a snapshot of the
// whole cluster.
func (s *Service) All(ctx context.Context) ([]Limit, error) {
	return s.query(ctx, attached+" ORDER BY scope, holder")
}

func (s *Service) query(ctx context.Context, sql string, args ...any) ([]Limit, error) {
	rows, err := s.client.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	defer rows.Close()
	var out []Limit
	for rows.Next() {
		var l Limit
		var slots []byte
		if err := rows.Scan(&l.Scope, &l.ScopeID, &l.Policy, &slots, &l.MaxSessions,
			&l.MaxPendingSessions, &l.MaxVfolders, &l.MaxScopeBytes); err != nil {
			return nil, fmt.Errorf("read limit: %w", err)
		}
		if err := json.Unmarshal(slots, &l.TotalSlots); err != nil {
			return nil, fmt.Errorf("slots of policy %s: %w", l.Policy, err)
		}
		out = append(out, l)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return out, nil
}
