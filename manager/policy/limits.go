package policy

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// Scope is the kind of object that a policy is attached to.
type Scope string

// The scopes; the policies of all of them apply together.
const (
	ScopeDomain  Scope = "domain"
	ScopeKeypair Scope = "keypair"
	ScopeProject Scope = "project"
	ScopeUser    Scope = "user"
)

// Limit is a policy with its attachment. A nil amount means no limit; a missing slot too,
// unless unlisted slots are zero.
type Limit struct {
	Scope   Scope
	ScopeID uuid.UUID
	// Holder is the name of the object that it is attached to, for messages; the other names
	// likewise.
	Holder string
	// Person is the user whose sessions count, if the scope is a user or keypair: the limit of
	// a keypair counts all sessions of its user, so that more keypairs do not give more
	// resources.
	Person uuid.UUID
	// Group restricts it to the sessions of a resource group, Within a user's limit to a
	// project; zero means no restriction.
	Group, Within         uuid.UUID
	GroupName, WithinName string

	Policy       string // name
	TotalSlots   resource.Slots
	UnlistedZero bool
	PendingSlots resource.Slots
	Amounts
}

// Querier is a client or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error)
}

// Place is the context of a request. Limits of fields that are zero do not apply: without a
// group, no limit of a group.
type Place struct {
	Domain, Project, User, Group uuid.UUID
	Keypair                      uuid.UUID // keypair of the request
}

const none = "'00000000-0000-0000-0000-000000000000'::uuid"

// attached selects every policy with its object. Callers add conditions on the object.
const attached = `
SELECT CASE WHEN a.domain_id IS NOT NULL THEN 'domain' WHEN a.project_id IS NOT NULL THEN 'project'
    WHEN a.user_id IS NOT NULL THEN 'user' ELSE 'keypair' END AS scope,
  coalesce(a.domain_id, a.project_id, a.user_id, a.keypair_id) AS holder,
  coalesce(d.name, p.name, u.username, k.access_key), coalesce(a.user_id, k.user_id, ` + none + `),
  coalesce(a.resource_group_id, ` + none + `), coalesce(g.name, ''), coalesce(a.within_project_id, ` + none + `), coalesce(w.name, ''),
  r.name, r.total_slots, r.unlisted_slots = 'zero', r.max_pending_slots,
  r.max_sessions, r.max_pending_sessions, r.max_containers_per_session, r.max_priority, r.max_session_lifetime,
  r.idle_timeout, r.max_public_app_time, r.max_vfolders, r.max_logins, r.max_customized_images, r.max_deployments, r.max_scope_bytes, r.max_disk_bytes, r.max_image_bytes
FROM policy_attachments a JOIN resource_policies r ON r.id = a.policy_id
  LEFT JOIN domains d ON d.id = a.domain_id LEFT JOIN projects p ON p.id = a.project_id
  LEFT JOIN users u ON u.id = a.user_id LEFT JOIN keypairs k ON k.id = a.keypair_id
  LEFT JOIN resource_groups g ON g.id = a.resource_group_id LEFT JOIN projects w ON w.id = a.within_project_id`

const inOrder = ` ORDER BY scope, holder, a.resource_group_id NULLS FIRST, a.within_project_id NULLS FIRST, a.id`

// Limits returns the limits that apply to a user in a project of a domain, on a resource group
// or, if zero, outside of groups. They are not filtered by the viewer, because decisions need
// all of them.
func (s *Service) Limits(ctx context.Context, domain, project, user, group uuid.UUID) ([]Limit, error) {
	return s.Binding(ctx, Place{Domain: domain, Project: project, User: user, Group: group})
}

// Binding is Limits, plus the limits of the keypair of the request.
func (s *Service) Binding(ctx context.Context, at Place) ([]Limit, error) {
	return query(ctx, s.client, attached+`
WHERE (a.domain_id = $1 OR a.project_id = $2 OR a.user_id = $3 OR a.keypair_id = $4)
  AND (a.resource_group_id IS NULL OR a.resource_group_id = $5)
  AND (a.within_project_id IS NULL OR a.within_project_id = $2)`+inOrder,
		at.Domain, at.Project, at.User, at.Keypair, at.Group)
}

// All returns every attached policy with one statement, for a snapshot of the whole cluster.
func (s *Service) All(ctx context.Context, q Querier) ([]Limit, error) {
	return query(ctx, q, attached+inOrder)
}

// Binds reports whether a limit applies at a place.
func (l *Limit) Binds(at Place) bool {
	if l.Group != uuid.Nil && l.Group != at.Group || l.Within != uuid.Nil && l.Within != at.Project {
		return false
	}
	switch l.Scope {
	case ScopeDomain:
		return l.ScopeID == at.Domain
	case ScopeProject:
		return l.ScopeID == at.Project
	case ScopeUser:
		return l.ScopeID == at.User
	}
	return l.ScopeID == at.Keypair
}

// Slot returns the limit of a slot, and whether there is one.
func (l *Limit) Slot(name string) (int64, bool) {
	n, ok := l.TotalSlots[name]
	return n, ok || l.UnlistedZero
}

func query(ctx context.Context, q Querier, sql string, args ...any) ([]Limit, error) {
	rows, err := q.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	defer rows.Close()
	var out []Limit
	for rows.Next() {
		var l Limit
		var total, pending []byte
		to := []any{&l.Scope, &l.ScopeID, &l.Holder, &l.Person, &l.Group, &l.GroupName, &l.Within, &l.WithinName,
			&l.Policy, &total, &l.UnlistedZero, &pending}
		for _, one := range l.Amounts.list() {
			to = append(to, one.n)
		}
		if err := rows.Scan(append(to, &l.MaxScopeBytes, &l.MaxDiskBytes, &l.MaxImageBytes)...); err != nil {
			return nil, fmt.Errorf("read limit: %w", err)
		}
		if err := json.Unmarshal(total, &l.TotalSlots); err != nil {
			return nil, fmt.Errorf("slots of policy %s: %w", l.Policy, err)
		}
		if err := json.Unmarshal(pending, &l.PendingSlots); err != nil {
			return nil, fmt.Errorf("pending slots of policy %s: %w", l.Policy, err)
		}
		out = append(out, l)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return out, nil
}
