package schema

import (
	"context"
	"fmt"

	"entgo.io/ent"
	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/intercept"
	"github.com/berthhq/berth/internal/viewer"
)

// rule turns a viewer who does not see everything into a condition on the
// rows of one table.
type rule func(v *viewer.Viewer, s *sql.Selector) *sql.Predicate

// visible scopes every read of an entity, nested ones included, to what the
// viewer in the context may see. Without a viewer the read fails; an
// anonymous one sees nothing.
func visible(r rule) []ent.Interceptor {
	return []ent.Interceptor{ent.TraverseFunc(func(ctx context.Context, query ent.Query) error {
		v := viewer.From(ctx)
		if v == nil {
			return fmt.Errorf("read without a viewer: %w", errdefs.ErrUnauthenticated)
		}
		if v.SeesAll() {
			return nil
		}
		q, err := intercept.NewQuery(query)
		if err != nil {
			return fmt.Errorf("scope query: %w", err)
		}
		q.WhereP(func(s *sql.Selector) {
			if v.IsAnonymous() {
				s.Where(sql.False())
				return
			}
			s.Where(r(v, s))
		})
		return nil
	})}
}

// anyone is the rule of entities that every logged-in user may read.
func anyone(*viewer.Viewer, *sql.Selector) *sql.Predicate { return sql.ExprP("TRUE") }

// nobody is the rule of entities that only superadmins and the system read.
func nobody(*viewer.Viewer, *sql.Selector) *sql.Predicate { return sql.False() }

// charged is the rule of rows with the three scopes: one's own, those of
// projects one administers, those of the domain one administers.
func charged(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	p := []*sql.Predicate{sql.EQ(s.C("owner_id"), v.User)}
	if len(v.Admins) > 0 {
		p = append(p, sql.In(s.C("project_id"), ids(v.Admins)...))
	}
	if v.Role == viewer.RoleAdmin {
		p = append(p, sql.EQ(s.C("domain_id"), v.Domain))
	}
	return sql.Or(p...)
}

// throughSession is the rule of rows that are seen with their session.
func throughSession(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	sessions := sql.Table("sessions")
	sub := sql.Select(sessions.C("id")).From(sessions)
	sub.Where(charged(v, sub))
	return sql.In(s.C("session_id"), sub)
}

// publicGroups selects the ids of resource groups open to everybody.
func publicGroups() *sql.Selector {
	groups := sql.Table("resource_groups")
	return sql.Select(groups.C("id")).From(groups).Where(sql.And(sql.IsTrue(groups.C("public")), sql.IsTrue(groups.C("active"))))
}

func visibleDomain(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.EQ(s.C("id"), v.Domain)
}

func visibleProject(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(inDomain(v, s), sql.In(s.C("id"), ids(v.Projects)...))
}

func visibleMembership(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	p := sql.Or(sql.EQ(s.C("user_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...))
	if v.Role != viewer.RoleAdmin {
		return p
	}
	projects := sql.Table("projects")
	sub := sql.Select(projects.C("id")).From(projects).Where(sql.EQ(projects.C("domain_id"), v.Domain))
	return sql.Or(p, sql.In(s.C("project_id"), sub))
}

// visibleUser: oneself, the members of one's projects, and for a domain
// admin everybody in the domain.
func visibleUser(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	members := sql.Table("memberships")
	sub := sql.Select(members.C("user_id")).From(members).Where(sql.In(members.C("project_id"), ids(v.Projects)...))
	return sql.Or(sql.EQ(s.C("id"), v.User), inDomain(v, s), sql.In(s.C("id"), sub))
}

func visibleOwn(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.EQ(s.C("user_id"), v.User)
}

// visiblePolicy: the policies that bind the viewer, or that a domain admin hands out.
func visiblePolicy(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	if v.Role == viewer.RoleAdmin {
		return anyone(v, s)
	}
	bound := func(table string, p func(*sql.SelectTable) *sql.Predicate, column string) *sql.Predicate {
		t := sql.Table(table)
		return sql.In(s.C("id"), sql.Select(t.C(column)).From(t).Where(sql.And(sql.NotNull(t.C(column)), p(t))))
	}
	return sql.Or(
		bound("users", func(t *sql.SelectTable) *sql.Predicate { return sql.EQ(t.C("id"), v.User) }, "user_policy"),
		bound("projects", func(t *sql.SelectTable) *sql.Predicate { return sql.In(t.C("id"), ids(v.Projects)...) }, "project_policy"),
		bound("domains", func(t *sql.SelectTable) *sql.Predicate { return sql.EQ(t.C("id"), v.Domain) }, "domain_policy"),
	)
}

func visibleGroup(_ *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.And(sql.IsTrue(s.C("public")), sql.IsTrue(s.C("active")))
}

func visibleAgent(_ *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.In(s.C("resource_group_id"), publicGroups())
}

func visibleDevice(_ *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	agents := sql.Table("agents")
	sub := sql.Select(agents.C("id")).From(agents).Where(sql.In(agents.C("resource_group_id"), publicGroups()))
	return sql.In(s.C("agent_id"), sub)
}

func visibleScope(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(inDomain(v, s), sql.EQ(s.C("holder_id"), v.User), sql.In(s.C("holder_id"), ids(v.Projects)...))
}

func visibleVfolder(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(inDomain(v, s), sql.EQ(s.C("owner_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...))
}

// inDomain is true for a domain admin on rows of the domain.
func inDomain(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	if v.Role != viewer.RoleAdmin {
		return sql.False()
	}
	return sql.EQ(s.C("domain_id"), v.Domain)
}

func ids(list []uuid.UUID) []any {
	args := make([]any, len(list))
	for i, u := range list {
		args[i] = u
	}
	return args
}

// Interceptors, one line an entity: who reads it.
func (Domain) Interceptors() []ent.Interceptor         { return visible(visibleDomain) }
func (Project) Interceptors() []ent.Interceptor        { return visible(visibleProject) }
func (Membership) Interceptors() []ent.Interceptor     { return visible(visibleMembership) }
func (User) Interceptors() []ent.Interceptor           { return visible(visibleUser) }
func (ResourcePolicy) Interceptors() []ent.Interceptor { return visible(visiblePolicy) }
func (AccessToken) Interceptors() []ent.Interceptor    { return visible(visibleOwn) }
func (LoginSession) Interceptors() []ent.Interceptor   { return visible(visibleOwn) }
func (ResourceGroup) Interceptors() []ent.Interceptor  { return visible(visibleGroup) }
func (Agent) Interceptors() []ent.Interceptor          { return visible(visibleAgent) }
func (Device) Interceptors() []ent.Interceptor         { return visible(visibleDevice) }
func (SlotType) Interceptors() []ent.Interceptor       { return visible(anyone) }
func (Registry) Interceptors() []ent.Interceptor       { return visible(anyone) }
func (Image) Interceptors() []ent.Interceptor          { return visible(anyone) }
func (Session) Interceptors() []ent.Interceptor        { return visible(charged) }
func (Kernel) Interceptors() []ent.Interceptor         { return visible(charged) }
func (Allocation) Interceptors() []ent.Interceptor     { return visible(charged) }
func (SessionEvent) Interceptors() []ent.Interceptor   { return visible(throughSession) }
func (SessionMount) Interceptors() []ent.Interceptor   { return visible(throughSession) }
func (StorageProxy) Interceptors() []ent.Interceptor   { return visible(nobody) }
func (Volume) Interceptors() []ent.Interceptor         { return visible(anyone) }
func (QuotaScope) Interceptors() []ent.Interceptor     { return visible(visibleScope) }
func (Vfolder) Interceptors() []ent.Interceptor        { return visible(visibleVfolder) }
func (AuditEntry) Interceptors() []ent.Interceptor     { return visible(nobody) }
func (JoinToken) Interceptors() []ent.Interceptor      { return visible(nobody) }
func (Fence) Interceptors() []ent.Interceptor          { return visible(nobody) }
