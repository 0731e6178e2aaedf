package group

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// Access is the permission of a user or a project to use a group, with its reasons.
type Access struct {
	ResourceGroup uuid.UUID
	User, Project *uuid.UUID // one of them
	Via           []string   // superadmin, public, domain, project, user, keypair
}

// AccessQuestion selects the users and projects that can use a group, or the groups that a
// user or a project can use; without any of them, the groups of the viewer.
type AccessQuestion struct {
	Group, User, Project *uuid.UUID
	Where                AccessWhereInput
	First                int
	After                *ent.Cursor
}

// AccessWhereInput filters the results.
type AccessWhereInput struct {
	Holder           *string // user or project: only those
	NameContainsFold *string // part of the name of the listed user, project or group
}

// AccessConnection is one page of results.
type AccessConnection struct {
	Edges      []*AccessEdge
	PageInfo   ent.PageInfo
	TotalCount int // of all pages
}

// AccessEdge is one result with its position.
type AccessEdge struct {
	Node   *Access
	Cursor ent.Cursor
}

// maxPage is the largest page.
const maxPage = 100

// The union of all reasons, by group and then projects before users. A project can use groups
// that are open to all its members; a grant to a user or keypair applies in every project. A
// null list of ids is not a condition.
const who = `
WITH a AS (
SELECT g.id AS group_id, u.id AS holder, json_agg(w.via ORDER BY w.n) AS via, g.name, 1 AS kind, u.email AS title, u.full_name AS more
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
WHERE g.active AND u.status = 'active' AND ($1::uuid[] IS NULL OR g.id = ANY($1)) AND ($2::uuid[] IS NULL OR u.id = ANY($2))
GROUP BY g.id, u.id
UNION ALL
SELECT g.id, p.id, json_agg(w.via ORDER BY w.n), g.name, 0, p.name, ''
FROM resource_groups g CROSS JOIN projects p JOIN LATERAL (
  SELECT 1 n, 'public' via WHERE g.public
  UNION ALL SELECT 2, 'domain' WHERE EXISTS (SELECT 1 FROM group_grants x WHERE x.resource_group_id = g.id AND x.domain_id = p.domain_id)
  UNION ALL SELECT 3, 'project' WHERE EXISTS (SELECT 1 FROM group_grants x WHERE x.resource_group_id = g.id AND x.project_id = p.id)
) w ON true
WHERE g.active AND p.active AND ($1::uuid[] IS NULL OR g.id = ANY($1)) AND ($3::uuid[] IS NULL OR p.id = ANY($3))
GROUP BY g.id, p.id
), b AS (SELECT * FROM a WHERE ($4 = '' OR strpos(lower(CASE WHEN $5 THEN title || ' ' || more ELSE name END), lower($4)) > 0))
SELECT group_id, holder, via, kind, name, title, (SELECT count(*) FROM b) FROM b
WHERE $6 = '' OR (name, kind, title, holder) > ($6, $7, $8, $9::uuid)
ORDER BY name, kind, title, holder LIMIT $10`

// place is the position of a result: the part of the order that is not the id of the holder.
type place struct {
	Group string
	Kind  int // 0 for projects, 1 for users
	Title string
}

// cursor returns the position of a holder at p.
func (p place) cursor(holder uuid.UUID) ent.Cursor {
	return ent.Cursor{ID: holder, Value: []any{p.Group, strconv.Itoa(p.Kind), p.Title}}
}

// placeOf returns the position that a cursor names; without a cursor, the one before all results.
func placeOf(c *ent.Cursor) (p place, holder uuid.UUID, err error) {
	if c == nil {
		return p, holder, nil
	}
	invalid := problem.Invalid("after", "is not a valid cursor for this list")
	values, _ := c.Value.([]any)
	if len(values) != 3 {
		return p, holder, invalid
	}
	group, _ := values[0].(string)
	kind, _ := values[1].(string)
	title, _ := values[2].(string)
	n, err := strconv.Atoi(kind)
	if err != nil || group == "" {
		return p, holder, invalid
	}
	return place{Group: group, Kind: n, Title: title}, c.ID, nil
}

// Access returns a page of results, with only the users, projects and groups that the viewer
// can see.
func (s *Service) Access(ctx context.Context, q AccessQuestion) (*AccessConnection, error) {
	v := viewer.From(ctx)
	if v == nil || v.IsAnonymous() {
		return nil, problem.Unauthenticated("log in first")
	}
	if q.First < 1 || q.First > maxPage {
		return nil, problem.Invalid("first", "%d is not between 1 and %d", q.First, maxPage).WithLimit(fmt.Sprint(maxPage))
	}
	after, holder, err := placeOf(q.After)
	if err != nil {
		return nil, err
	}
	groups, users, projects, err := s.among(ctx, v, q)
	if err != nil {
		return nil, err
	}
	switch h := q.Where.Holder; {
	case h == nil:
	case *h == "user":
		projects = &[]string{}
	default:
		users = &[]string{}
	}
	name := ""
	if q.Where.NameContainsFold != nil {
		name = *q.Where.NameContainsFold
	}
	rows, err := s.client.QueryContext(ctx, who, groups, users, projects, name, q.Group != nil,
		after.Group, after.Kind, after.Title, holder.String(), q.First+1)
	if err != nil {
		return nil, fmt.Errorf("look up who may use groups: %w", err)
	}
	defer rows.Close()
	out := &AccessConnection{Edges: []*AccessEdge{}, PageInfo: ent.PageInfo{HasPreviousPage: q.After != nil}}
	for rows.Next() {
		if len(out.Edges) == q.First {
			out.PageInfo.HasNextPage = true
			break
		}
		e, total, err := edgeOf(rows)
		if err != nil {
			return nil, fmt.Errorf("read who may use groups: %w", err)
		}
		out.Edges, out.TotalCount = append(out.Edges, e), total
	}
	if n := len(out.Edges); n > 0 {
		out.PageInfo.StartCursor, out.PageInfo.EndCursor = &out.Edges[0].Cursor, &out.Edges[n-1].Cursor
	}
	return out, rows.Err()
}

// edgeOf reads one result, and the number of results on all pages.
func edgeOf(row interface{ Scan(...any) error }) (e *AccessEdge, total int, err error) {
	var (
		a      Access
		at     place
		holder uuid.UUID
		via    []byte
	)
	if err := row.Scan(&a.ResourceGroup, &holder, &via, &at.Kind, &at.Group, &at.Title, &total); err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(via, &a.Via); err != nil {
		return nil, 0, err
	}
	if at.Kind == 1 {
		a.User = &holder
	} else {
		a.Project = &holder
	}
	return &AccessEdge{Node: &a, Cursor: at.cursor(holder)}, total, nil
}

// among returns the groups, users and projects that results can include; nil means all, for
// viewers who can see everything.
func (s *Service) among(ctx context.Context, v *viewer.Viewer, q AccessQuestion) (groups, users, projects *[]string, err error) {
	nobody := &[]string{}
	switch {
	case q.Group != nil && q.User == nil && q.Project == nil:
		if _, err := s.client.ResourceGroup.Get(ctx, *q.Group); err != nil {
			return nil, nil, nil, permit.Missing(err, "resource group", "resourceGroup")
		}
		groups = &[]string{q.Group.String()}
		if v.SeesAll() && v.Within == uuid.Nil {
			return groups, nil, nil, nil
		}
		if users, err = texts(s.client.User.Query().Where(user.StatusEQ(user.StatusActive)).IDs(ctx)); err != nil {
			return nil, nil, nil, fmt.Errorf("read users: %w", err)
		}
		if projects, err = texts(s.client.Project.Query().Where(project.Active(true)).IDs(ctx)); err != nil {
			return nil, nil, nil, fmt.Errorf("read projects: %w", err)
		}
		return groups, users, projects, nil
	case q.Group == nil && q.User != nil && q.Project == nil:
		if _, err := s.client.User.Get(ctx, *q.User); err != nil {
			return nil, nil, nil, permit.Missing(err, "user", "user")
		}
		users, projects = &[]string{q.User.String()}, nobody
	case q.Group == nil && q.User == nil && q.Project != nil:
		if _, err := s.client.Project.Get(ctx, *q.Project); err != nil {
			return nil, nil, nil, permit.Missing(err, "project", "project")
		}
		users, projects = nobody, &[]string{q.Project.String()}
	case q.Group == nil && q.User == nil && q.Project == nil:
		return nil, &[]string{v.User.String()}, nobody, nil
	default:
		return nil, nil, nil, problem.Invalid("resourceGroup", "name at most one of resourceGroup, user and project")
	}
	if v.SeesAll() {
		return nil, users, projects, nil
	}
	// Groups that are granted only to others are not visible.
	if groups, err = texts(s.client.ResourceGroup.Query().IDs(ctx)); err != nil {
		return nil, nil, nil, fmt.Errorf("read resource groups: %w", err)
	}
	return groups, users, projects, nil
}

func texts(list []uuid.UUID, err error) (*[]string, error) {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = id.String()
	}
	return &out, err
}
