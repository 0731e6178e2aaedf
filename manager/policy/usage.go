package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
)

// Used is the current usage of a limit.
type Used struct {
	Slots        resource.Slots // of live allocations
	Sessions     int            // with allocations
	Pending      int
	PendingSlots resource.Slots
}

// Usage is the usage per domain, project, owner and resource group.
type Usage struct {
	domains, projects, owners map[uuid.UUID][]charge
}

type charge struct {
	project, group uuid.UUID
	kind, slot     string
	amount         string
}

// Usage is read with one statement, so that all of it is from one moment: allocations of
// sessions, requests of pending sessions, or both.
var (
	held   = `WITH bound AS (` + bound + ` AND s.status <> 'pending')` + allocatedBy
	queued = `WITH bound AS (` + bound + ` AND s.status = 'pending')` + queuedBy
	either = `WITH bound AS (` + bound + `)` + allocatedBy + ` UNION ALL` + queuedBy
)

const bound = `SELECT s.id, s.domain_id, s.project_id, s.owner_id, s.resource_group_id, s.status FROM sessions s WHERE s.terminated_at IS NULL AND
  (s.domain_id = ANY($1::text[]::uuid[]) OR s.project_id = ANY($2::text[]::uuid[]) OR s.owner_id = ANY($3::text[]::uuid[]))`

var allocatedBy = `
SELECT s.domain_id, s.project_id, s.owner_id, s.resource_group_id, 'slots', a.slot, sum(a.amount)::bigint::text
  FROM bound s JOIN allocations a ON a.session_id = s.id AND a.freed_at IS NULL GROUP BY 1, 2, 3, 4, 6
UNION ALL SELECT s.domain_id, s.project_id, s.owner_id, s.resource_group_id, 'sessions', '', count(*)::text
  FROM bound s WHERE s.status IN (` + occupying() + `) GROUP BY 1, 2, 3, 4`

const queuedBy = `
SELECT s.domain_id, s.project_id, s.owner_id, s.resource_group_id, 'pending', '', count(*)::text
  FROM bound s WHERE s.status = 'pending' GROUP BY 1, 2, 3, 4
UNION ALL SELECT s.domain_id, s.project_id, s.owner_id, s.resource_group_id, 'pending slots', e.key, trim_scale(sum(e.value::numeric))::text
  FROM bound s JOIN kernels k ON k.session_id = s.id, jsonb_each_text(k.slots) e WHERE s.status = 'pending' GROUP BY 1, 2, 3, 4, 6`

func occupying() string {
	var list []string
	for _, s := range lifecycle.Occupying {
		list = append(list, "'"+string(s)+"'")
	}
	return strings.Join(list, ", ")
}

// Usage sums the usage of the limits.
func (s *Service) Usage(ctx context.Context, q Querier, limits []Limit) (*Usage, error) {
	return usageOf(ctx, q, either, limits)
}

// Held is the usage by sessions with allocations.
func (s *Service) Held(ctx context.Context, q Querier, limits []Limit) (*Usage, error) {
	return usageOf(ctx, q, held, limits)
}

// Queued is the usage by pending sessions.
func (s *Service) Queued(ctx context.Context, q Querier, limits []Limit) (*Usage, error) {
	return usageOf(ctx, q, queued, limits)
}

func usageOf(ctx context.Context, q Querier, charges string, limits []Limit) (*Usage, error) {
	u := &Usage{map[uuid.UUID][]charge{}, map[uuid.UUID][]charge{}, map[uuid.UUID][]charge{}}
	if len(limits) == 0 {
		return u, nil
	}
	domains, projects, owners := []string{}, []string{}, []string{}
	for i := range limits {
		switch l := &limits[i]; l.Scope {
		case ScopeDomain:
			domains = append(domains, l.ScopeID.String())
		case ScopeProject:
			projects = append(projects, l.ScopeID.String())
		default:
			owners = append(owners, l.Person.String())
		}
	}
	rows, err := q.QueryContext(ctx, charges, domains, projects, owners)
	if err != nil {
		return nil, fmt.Errorf("sum the usage: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var domain, owner uuid.UUID
		var c charge
		if err := rows.Scan(&domain, &c.project, &owner, &c.group, &c.kind, &c.slot, &c.amount); err != nil {
			return nil, fmt.Errorf("read the usage: %w", err)
		}
		u.domains[domain] = append(u.domains[domain], c)
		u.projects[c.project] = append(u.projects[c.project], c)
		u.owners[owner] = append(u.owners[owner], c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the usage: %w", err)
	}
	return u, nil
}

// Of returns the usage of one of the limits that were passed to Usage.
func (u *Usage) Of(l *Limit) (Used, error) {
	used := Used{Slots: resource.Slots{}, PendingSlots: resource.Slots{}}
	list := u.owners[l.Person]
	switch l.Scope {
	case ScopeDomain:
		list = u.domains[l.ScopeID]
	case ScopeProject:
		list = u.projects[l.ScopeID]
	}
	for _, c := range list {
		if l.Group != uuid.Nil && l.Group != c.group || l.Within != uuid.Nil && l.Within != c.project {
			continue
		}
		if err := used.add(c); err != nil {
			return used, err
		}
	}
	return used, nil
}

func (u *Used) add(c charge) (err error) {
	var n int64
	if c.kind == "pending slots" {
		n, err = resource.Parse(c.slot, c.amount)
	} else {
		_, err = fmt.Sscan(c.amount, &n)
	}
	if err != nil {
		return fmt.Errorf("%s %s %s: %w", c.amount, c.kind, c.slot, err)
	}
	switch c.kind {
	case "slots":
		u.Slots[c.slot] += n
	case "sessions":
		u.Sessions += int(n)
	case "pending":
		u.Pending += int(n)
	case "pending slots":
		u.PendingSlots[c.slot] += n
	}
	return nil
}
