package group

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Access says that a user or a project may use a group, and why.
type Access struct {
	ResourceGroup uuid.UUID
	User, Project *uuid.UUID // one of them
	Via           []string   // superadmin, public, domain, project, user, keypair
}

// maxAccess is the most users and projects that one answer lists.
const maxAccess = 1000

// The union of all reasons. A project may use what is open to all who work in
// it; what is granted to a user or keypair, he may use in every project.
const (
	whoUser = `
SELECT g.id, u.id, json_agg(w.via ORDER BY w.n)
FROM resource_groups g CROSS JOIN users u JOIN LATERAL (
  SELECT 0 n, 'superadmin' via WHERE u.role = 'superadmin'
  UNION ALL SELECT 1, 'public' WHERE g.public
  UNION ALL SELECT 2, 'domain' WHERE EXISTS (SELECT 1 FROM group_grants x WHERE x.resource_group_id = g.id AND x.domain_id = u.domain_id)
  UNION ALL SELECT 3, 'project' WHERE EXISTS (SELECT 1 FROM group_grants x JOIN memberships m ON m.project_id = x.project_id
    WHERE x.resource_group_id = g.id AND m.user_id = u.id)
  UNION ALL SELECT 4, 'user' WHERE EXISTS (SELECT 1 FROM group_grants x WHERE x.resource_group_id = g.id AND x.user_id = u.id)
  UNION ALL SELECT 5, 'keypair' WHERE EXISTS (SELECT 1 FROM group_grants x JOIN keypairs k ON k.id = x.keypair_id
    WHERE x.resource_group_id = g.id AND k.user_id = u.id)
) w ON true
WHERE g.active AND u.status = 'active' AND %s
GROUP BY g.id, u.id, g.name, u.email ORDER BY g.name, u.email LIMIT %d`
	whoProject = `
SELECT g.id, p.id, json_agg(w.via ORDER BY w.n)
FROM resource_groups g CROSS JOIN projects p JOIN LATERAL (
  SELECT 1 n, 'public' via WHERE g.public
  UNION ALL SELECT 2, 'domain' WHERE EXISTS (SELECT 1 FROM group_grants x WHERE x.resource_group_id = g.id AND x.domain_id = p.domain_id)
  UNION ALL SELECT 3, 'project' WHERE EXISTS (SELECT 1 FROM group_grants x WHERE x.resource_group_id = g.id AND x.project_id = p.id)
) w ON true
WHERE g.active AND p.active AND %s
GROUP BY g.id, p.id, g.name, p.name ORDER BY g.name, p.name LIMIT %d`
)

// Access answers who may use a group, or which groups a user or a project may
// use; without any of them, which groups the viewer may use. It names only whom
// and what the viewer sees, and of each kind at most maxAccess.
func (s *Service) Access(ctx context.Context, group, who, where *uuid.UUID) ([]Access, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return nil, problem.Unauthenticated("log in first")
	}
	switch {
	case group != nil && who == nil && where == nil:
		return s.ofGroup(ctx, *group)
	case group == nil && who != nil && where == nil:
		if _, err := s.client.User.Get(ctx, *who); err != nil {
			return nil, permit.Missing(err, "user", "user")
		}
		return s.usable(ctx, whoUser, "u.id = ANY($1::uuid[])", *who)
	case group == nil && who == nil && where != nil:
		if _, err := s.client.Project.Get(ctx, *where); err != nil {
			return nil, permit.Missing(err, "project", "project")
		}
		return s.usable(ctx, whoProject, "p.id = ANY($1::uuid[])", *where)
	case group == nil && who == nil && where == nil:
		return s.read(ctx, whoUser, "u.id = ANY($1::uuid[])", []uuid.UUID{v.User})
	}
	return nil, problem.Invalid("resourceGroup", "name at most one of resourceGroup, user and project")
}

// usable lists the groups that a user or project may use. A domain admin is not
// told of groups that are granted to others alone.
func (s *Service) usable(ctx context.Context, query, where string, id uuid.UUID) ([]Access, error) {
	list, err := s.read(ctx, query, where, []uuid.UUID{id})
	if err != nil || viewer.From(ctx).SeesAll() {
		return list, err
	}
	ids, err := s.client.ResourceGroup.Query().IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read resource groups: %w", err)
	}
	return slices.DeleteFunc(list, func(a Access) bool { return !slices.Contains(ids, a.ResourceGroup) }), nil
}

func (s *Service) ofGroup(ctx context.Context, id uuid.UUID) ([]Access, error) {
	if _, err := s.client.ResourceGroup.Get(ctx, id); err != nil {
		return nil, permit.Missing(err, "resource group", "resourceGroup")
	}
	users, err := s.client.User.Query().Where(user.StatusEQ(user.StatusActive)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	projects, err := s.client.Project.Query().Where(project.Active(true)).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	byUser, err := s.read(ctx, whoUser, "g.id = ANY($1::uuid[]) AND u.id = ANY($2::uuid[])", []uuid.UUID{id}, users)
	if err != nil {
		return nil, err
	}
	byProject, err := s.read(ctx, whoProject, "g.id = ANY($1::uuid[]) AND p.id = ANY($2::uuid[])", []uuid.UUID{id}, projects)
	if err != nil {
		return nil, err
	}
	return append(byProject, byUser...), nil
}

// read runs one of the queries, narrowed by a condition on lists of ids.
func (s *Service) read(ctx context.Context, query, where string, lists ...[]uuid.UUID) ([]Access, error) {
	args := make([]any, len(lists))
	for i, list := range lists {
		ids := make([]string, len(list))
		for k, id := range list {
			ids[k] = id.String()
		}
		args[i] = ids
	}
	rows, err := s.client.QueryContext(ctx, fmt.Sprintf(query, where, maxAccess), args...)
	if err != nil {
		return nil, fmt.Errorf("look up who may use groups: %w", err)
	}
	defer rows.Close()
	out := []Access{}
	for rows.Next() {
		var a Access
		var holder uuid.UUID
		var via []byte
		if err := rows.Scan(&a.ResourceGroup, &holder, &via); err != nil {
			return nil, fmt.Errorf("read who may use groups: %w", err)
		}
		if err := json.Unmarshal(via, &a.Via); err != nil {
			return nil, fmt.Errorf("read who may use groups: %w", err)
		}
		if query == whoUser {
			a.User = &holder
		} else {
			a.Project = &holder
		}
		out = append(out, a)
	}
	return out, rows.Err()
}
