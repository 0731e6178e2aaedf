package schema

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"entgo.io/ent"
	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/intercept"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
)

// rule returns the condition on the rows of a table for a viewer who cannot see everything.
type rule func(v *viewer.Viewer, s *sql.Selector) *sql.Predicate

// visible filters every read of a table, nested ones included, by the viewer in the context:
// by the rule for the built-in roles, or by a custom role that can read the entity. A read
// without a viewer is an error; an anonymous viewer sees nothing.
func visible(e access.Entity, r rule) []ent.Interceptor {
	return []ent.Interceptor{ent.TraverseFunc(func(ctx context.Context, query ent.Query) error {
		v := viewer.From(ctx)
		if v == nil {
			return fmt.Errorf("read without a viewer: %w", errdefs.ErrUnauthenticated)
		}
		if v.SeesAll() && v.Within == uuid.Nil {
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
			s.Where(bound(v, s, sql.Or(r(v, s), granted(v, e, s))))
		})
		return nil
	})}
}

// granted matches rows of scopes in which a custom role of the viewer can read the entity.
func granted(v *viewer.Viewer, e access.Entity, s *sql.Selector) *sql.Predicate {
	if len(v.Grants) == 0 {
		return sql.False()
	}
	if len(v.Granted(access.Read, e, access.OnSystem)) > 0 {
		return sql.ExprP("TRUE")
	}
	p := sql.False()
	for _, on := range []struct {
		scope  access.Scope
		column string
	}{
		{access.OnDomain, domainColumns[s.TableName()]},
		{access.OnProject, projectColumns[s.TableName()]},
		{access.OnObject, objectColumns[s.TableName()]},
	} {
		if list := v.Granted(access.Read, e, on.scope); len(list) > 0 && on.column != "" {
			p = sql.Or(p, sql.In(s.C(on.column), ids(list)...))
		}
	}
	return p
}

// Columns with the scope of a row, for tables that have one.
var (
	domainColumns = map[string]string{
		"domains": "id", "projects": "domain_id", "users": "domain_id", "sessions": "domain_id", "kernels": "domain_id", "image_builds": "domain_id", "deployments": "domain_id", "deployment_keys": "domain_id",
		"allocations": "domain_id", "session_starts": "domain_id", "session_uses": "domain_id", "vfolders": "domain_id", "vfolder_shares": "domain_id", "quota_scopes": "domain_id", "audit_entries": "domain_id",
		"session_groups": "domain_id", "session_arrays": "domain_id", "session_templates": "domain_id", "tasks": "domain_id", "invitations": "domain_id", "login_attempts": "domain_id", "identity_providers": "domain_id", "object_storages": "domain_id", "images": "domain_id",
	}
	projectColumns = map[string]string{
		"projects": "id", "memberships": "project_id", "sessions": "project_id", "kernels": "project_id", "image_builds": "project_id", "deployments": "project_id",
		"session_groups": "project_id", "session_arrays": "project_id", "session_templates": "project_id", "allocations": "project_id", "session_starts": "project_id", "session_uses": "project_id", "vfolders": "project_id", "audit_entries": "project_id", "invitations": "project_id",
	}
	objectColumns = map[string]string{
		"domains": "id", "projects": "id", "memberships": "project_id", "users": "id", "roles": "id", "role_grants": "role_id",
		"resource_policies": "id", "resource_groups": "id", "group_grants": "resource_group_id", "resource_presets": "id",
		"agents": "id", "devices": "agent_id", "registries": "id", "images": "id", "image_versions": "image_id", "image_copies": "agent_id", "scan_results": "registry_id", "volumes": "id", "volume_grants": "volume_id", "object_storages": "id",
		"sessions": "id", "image_builds": "session_id", "deployments": "id", "deployment_revisions": "deployment_id", "deployment_replicas": "deployment_id", "deployment_events": "deployment_id", "kernels": "session_id", "allocations": "session_id", "session_events": "session_id",
		"session_mounts": "session_id", "app_shares": "session_id", "session_dependencies": "session_id", "session_starts": "session_id", "session_uses": "session_id", "session_groups": "id", "session_arrays": "id", "session_templates": "id", "share_weights": "resource_group_id",
		"idle_checkers": "id", "idle_bindings": "checker_id", "vfolders": "id", "vfolder_shares": "vfolder_id", "tasks": "id",
	}
)

// bound restricts a token of one project to the rows of that project.
func bound(v *viewer.Viewer, s *sql.Selector, p *sql.Predicate) *sql.Predicate {
	column := projectColumns[s.TableName()]
	if v.Within == uuid.Nil || column == "" || s.TableName() == "audit_entries" {
		return p
	}
	return sql.And(p, sql.EQ(s.C(column), v.Within))
}

// anyone is the rule of entities that every logged-in user can read.
func anyone(*viewer.Viewer, *sql.Selector) *sql.Predicate { return sql.ExprP("TRUE") }

// onlySystem is the rule of entities that only superadmins and the system can read.
func onlySystem(*viewer.Viewer, *sql.Selector) *sql.Predicate { return sql.False() }

// charged is the rule of rows with the three scopes: the viewer's own rows, and those of the
// projects and the domain that the viewer administers.
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

// throughSession is the rule of rows that are visible if their session is.
func throughSession(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	sessions := sql.Table("sessions")
	sub := sql.Select(sessions.C("id")).From(sessions)
	sub.Where(bound(v, sub, sql.Or(charged(v, sub), granted(v, access.Session, sub))))
	return sql.In(s.C("session_id"), sub)
}

// throughProject matches rows of projects that a custom role makes visible.
func throughProject(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	projects := sql.Table("projects")
	sub := sql.Select(projects.C("id")).From(projects)
	sub.Where(granted(v, access.Project, sub))
	return sql.In(s.C("project_id"), sub)
}

// ownKeypairs selects the ids of the viewer's keypairs.
func ownKeypairs(v *viewer.Viewer) *sql.Selector {
	t := sql.Table("keypairs")
	return sql.Select(t.C("id")).From(t).Where(sql.EQ(t.C("user_id"), v.User))
}

// openGroups selects the ids of resource groups that the viewer can use.
func openGroups(v *viewer.Viewer) *sql.Selector {
	grants := sql.Table("group_grants")
	granted := sql.Select(grants.C("resource_group_id")).From(grants).Where(sql.Or(
		sql.EQ(grants.C("domain_id"), v.Domain), sql.EQ(grants.C("user_id"), v.User),
		sql.In(grants.C("project_id"), ids(v.Projects)...), sql.In(grants.C("keypair_id"), ownKeypairs(v)),
	))
	groups := sql.Table("resource_groups")
	return sql.Select(groups.C("id")).From(groups).Where(sql.And(
		sql.IsTrue(groups.C("active")), sql.Or(sql.IsTrue(groups.C("public")), sql.In(groups.C("id"), granted)),
	))
}

func visibleDomain(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.EQ(s.C("id"), v.Domain)
}

func visibleProject(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(inDomain(v, s), sql.In(s.C("id"), ids(v.Projects)...))
}

func visibleMembership(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	p := sql.Or(sql.EQ(s.C("user_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...), throughProject(v, s))
	if v.Role != viewer.RoleAdmin {
		return p
	}
	projects := sql.Table("projects")
	sub := sql.Select(projects.C("id")).From(projects).Where(sql.EQ(projects.C("domain_id"), v.Domain))
	return sql.Or(p, sql.In(s.C("project_id"), sub))
}

// visibleUser: the viewer, the members of their projects and of projects that a custom role
// makes visible, and for a domain admin all users of the domain.
func visibleUser(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	members := sql.Table("memberships")
	sub := sql.Select(members.C("user_id")).From(members)
	sub.Where(sql.Or(sql.In(members.C("project_id"), ids(v.Projects)...), throughProject(v, sub)))
	return sql.Or(sql.EQ(s.C("id"), v.User), inDomain(v, s), sql.In(s.C("id"), sub))
}

func visibleOwn(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.EQ(s.C("user_id"), v.User)
}

// visiblePolicy: the policies that apply to the viewer, and for a domain admin those of the
// domain.
func visiblePolicy(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	if v.Role == viewer.RoleAdmin {
		return anyone(v, s)
	}
	t := sql.Table("policy_attachments")
	return sql.In(s.C("id"), sql.Select(t.C("policy_id")).From(t).Where(bindsViewer(v, t.C)))
}

// visibleAttachment: those of the viewer, their projects and their domain, and for admins all
// in the domain.
func visibleAttachment(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	p := bindsViewer(v, s.C)
	if v.Role != viewer.RoleAdmin {
		return p
	}
	users, projects := sql.Table("users"), sql.Table("projects")
	return sql.Or(p,
		sql.In(s.C("user_id"), sql.Select(users.C("id")).From(users).Where(sql.EQ(users.C("domain_id"), v.Domain))),
		sql.In(s.C("project_id"), sql.Select(projects.C("id")).From(projects).Where(sql.EQ(projects.C("domain_id"), v.Domain))),
	)
}

// visiblePrice: all, except those of resource groups and deployments that the viewer cannot see.
func visiblePrice(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	t := sql.Table("deployments")
	served := sql.Select(t.C("id")).From(t)
	served.Where(bound(v, served, sql.Or(visibleDeployment(v, served), granted(v, access.Deployment, served))))
	return sql.And(
		sql.Or(sql.IsNull(s.C("resource_group_id")), sql.In(s.C("resource_group_id"), openGroups(v))),
		sql.Or(sql.IsNull(s.C("deployment_id")), sql.In(s.C("deployment_id"), served)),
	)
}

// visibleBudget: the viewer's own and those of their projects, and for a domain admin those of the domain, its projects and its users.
func visibleBudget(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	p := sql.Or(sql.EQ(s.C("user_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...))
	if v.Role != viewer.RoleAdmin {
		return p
	}
	users, projects := sql.Table("users"), sql.Table("projects")
	return sql.Or(p, sql.EQ(s.C("domain_id"), v.Domain),
		sql.In(s.C("user_id"), sql.Select(users.C("id")).From(users).Where(sql.EQ(users.C("domain_id"), v.Domain))),
		sql.In(s.C("project_id"), sql.Select(projects.C("id")).From(projects).Where(sql.EQ(projects.C("domain_id"), v.Domain))),
	)
}

func bindsViewer(v *viewer.Viewer, c func(string) string) *sql.Predicate {
	return sql.Or(
		sql.EQ(c("domain_id"), v.Domain), sql.EQ(c("user_id"), v.User),
		sql.In(c("project_id"), ids(v.Projects)...), sql.In(c("keypair_id"), ownKeypairs(v)),
	)
}

// grantedTo is the rule of grants to a domain, project or user: those that apply to the viewer.
func grantedTo(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(
		sql.EQ(s.C("domain_id"), v.Domain), sql.EQ(s.C("user_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...),
	)
}

// groupGrantedTo is grantedTo, plus the grants to the viewer's keypairs.
func groupGrantedTo(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(grantedTo(v, s), sql.In(s.C("keypair_id"), ownKeypairs(v)))
}

// grantedToOrOpen is grantedTo, plus the grants to everyone.
func grantedToOrOpen(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(grantedTo(v, s), sql.And(sql.IsNull(s.C("domain_id")), sql.IsNull(s.C("project_id")), sql.IsNull(s.C("user_id"))))
}

// visiblePreset: the global presets, and those of groups that the viewer can use.
func visiblePreset(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(sql.IsNull(s.C("resource_group_id")), sql.In(s.C("resource_group_id"), openGroups(v)))
}

// visibleRole: the roles of the viewer.
func visibleRole(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	t := sql.Table("role_grants")
	return sql.In(s.C("id"), sql.Select(t.C("role_id")).From(t).Where(sql.EQ(t.C("user_id"), v.User)))
}

// visibleTask: the viewer's own tasks, tasks on folders that the viewer can share, and for a
// domain admin all of the domain.
func visibleTask(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(sql.EQ(s.C("creator_id"), v.User), sql.In(s.C("subject_id"), ownFolders(v)), inDomain(v, s))
}

// ownFolders selects the ids of the viewer's folders, and of the folders of projects that the
// viewer administers.
func ownFolders(v *viewer.Viewer) *sql.Selector {
	t := sql.Table("vfolders")
	return sql.Select(t.C("id")).From(t).Where(sql.Or(sql.EQ(t.C("owner_id"), v.User), sql.In(t.C("project_id"), ids(v.Admins)...)))
}

// visibleAttempt: the viewer's own logins, and for a domain admin those of the domain.
func visibleAttempt(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(sql.EQ(s.C("user_id"), v.User), inDomain(v, s))
}

// visibleAudit: the viewer's own actions, actions of others as the viewer or on the viewer's
// account, and for a domain admin all in the domain.
func visibleAudit(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(
		sql.EQ(s.C("actor_id"), v.User), sql.EQ(s.C("acted_as_id"), v.User), sql.EQ(s.C("entity_id"), v.User), inDomain(v, s),
	)
}

// visibleGroup: the active groups that are public, or granted to the viewer, their domain, a
// project of theirs or a keypair of theirs.
func visibleGroup(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.In(s.C("id"), openGroups(v))
}

// visibleShare: the weights of the viewer, their projects and their domain.
func visibleShare(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.And(grantedTo(v, s), sql.Or(sql.IsNull(s.C("resource_group_id")), sql.In(s.C("resource_group_id"), openGroups(v))))
}

// boundHere is the rule of idle bindings: those that can apply to sessions of the viewer, and
// for a domain admin those of the domain.
func boundHere(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	projects := sql.Table("projects")
	administered := sql.Select(projects.C("id")).From(projects)
	administered.Where(inDomain(v, administered))
	return sql.Or(sql.In(s.C("project_id"), administered),
		sql.EQ(s.C("domain_id"), v.Domain), sql.In(s.C("project_id"), ids(v.Projects)...), sql.In(s.C("resource_group_id"), openGroups(v)),
		sql.And(sql.IsNull(s.C("domain_id")), sql.IsNull(s.C("project_id")), sql.IsNull(s.C("resource_group_id"))),
	)
}

func visibleChecker(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	bindings := sql.Table("idle_bindings")
	sub := sql.Select(bindings.C("checker_id")).From(bindings)
	sub.Where(boundHere(v, sub))
	return sql.In(s.C("id"), sub)
}

func visibleAgent(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.In(s.C("resource_group_id"), openGroups(v))
}

func visibleDevice(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	agents := sql.Table("agents")
	sub := sql.Select(agents.C("id")).From(agents).Where(sql.In(agents.C("resource_group_id"), openGroups(v)))
	return sql.In(s.C("agent_id"), sub)
}

// visibleScope: the viewer's own, those of their projects, and those of folders that are
// shared with the viewer or that a custom role makes visible.
func visibleScope(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	folders := sql.Table("vfolders")
	shown := sql.Select(folders.C("quota_scope_id")).From(folders)
	shown.Where(sql.Or(granted(v, access.Vfolder, shown), sharedWith(v, shown)))
	return sql.Or(
		inDomain(v, s), sql.EQ(s.C("holder_id"), v.User), sql.In(s.C("holder_id"), ids(v.Projects)...), sql.In(s.C("id"), shown),
	)
}

func visibleVfolder(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(inDomain(v, s), sql.EQ(s.C("owner_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...), sharedWith(v, s))
}

// sharedWith matches the folders that are shared with the viewer personally.
func sharedWith(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.In(s.C("id"), ids(slices.Collect(maps.Keys(v.Shares)))...)
}

// visibleTemplate: the viewer's own, those of their projects and, for a domain admin, those of
// the domain.
func visibleTemplate(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(inDomain(v, s), sql.EQ(s.C("owner_id"), v.User), sql.In(s.C("project_id"), ids(v.Projects)...))
}

// visibleDeployment: as charged, and those that are shared with the viewer's projects.
func visibleDeployment(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(charged(v, s), sql.And(sql.IsTrue(s.C("shared")), sql.In(s.C("project_id"), ids(v.Projects)...)))
}

// throughDeployment is the rule of rows that are visible if their deployment is.
func throughDeployment(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	t := sql.Table("deployments")
	sub := sql.Select(t.C("id")).From(t)
	sub.Where(bound(v, sub, sql.Or(visibleDeployment(v, sub), granted(v, access.Deployment, sub))))
	return sql.In(s.C("deployment_id"), sub)
}

// private filters as visible does, but also for superadmins and monitors, and without custom roles.
func private(r rule) []ent.Interceptor {
	return []ent.Interceptor{ent.TraverseFunc(func(ctx context.Context, query ent.Query) error {
		v := viewer.From(ctx)
		switch {
		case v == nil:
			return fmt.Errorf("read without a viewer: %w", errdefs.ErrUnauthenticated)
		case v.IsSystem():
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

// ownOrSharedChat: the viewer's own, and those of their domain that are shared. Lists leave the shared ones out.
func ownOrSharedChat(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(sql.EQ(s.C("owner_id"), v.User), sql.And(sql.IsTrue(s.C("shared")), sql.EQ(s.C("domain_id"), v.Domain)))
}

// throughChat is the rule of rows that are visible if their chat is.
func throughChat(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	t := sql.Table("chats")
	sub := sql.Select(t.C("id")).From(t)
	sub.Where(ownOrSharedChat(v, sub))
	return sql.In(s.C("chat_id"), sub)
}

// throughOwnDeployment is the rule of rows that the owner of their deployment sees.
func throughOwnDeployment(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	t := sql.Table("deployments")
	return sql.In(s.C("deployment_id"), sql.Select(t.C("id")).From(t).Where(sql.EQ(t.C("owner_id"), v.User)))
}

// ownNotice: the viewer's own, of those that the page shows.
func ownNotice(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.And(visibleOwn(v, s), sql.IsTrue(s.C("in_page")))
}

// ownOrOfCluster: the viewer's own, and those of the cluster for superadmins and monitors.
func ownOrOfCluster(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	if !v.SeesAll() {
		return visibleOwn(v, s)
	}
	return sql.Or(visibleOwn(v, s), sql.IsNull(s.C("user_id")))
}

// addressed: the announcements to everyone, to the viewer's domain and projects, and for admins those to admins, from their start
// to their end.
func addressed(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	audience := []*sql.Predicate{
		sql.EQ(s.C("audience"), "everyone"),
		sql.And(sql.EQ(s.C("audience"), "domain"), sql.EQ(s.C("scope_id"), v.Domain)),
		sql.And(sql.EQ(s.C("audience"), "project"), sql.In(s.C("scope_id"), ids(v.Projects)...)),
	}
	if v.Role == viewer.RoleAdmin {
		audience = append(audience, sql.EQ(s.C("audience"), "admins"))
	}
	at := now()
	return sql.And(sql.Or(audience...), sql.LTE(s.C("starts_at"), at), sql.Or(sql.IsNull(s.C("ends_at")), sql.GT(s.C("ends_at"), at)))
}

// usableEndpoint: those for all domains, and those for the viewer's.
func usableEndpoint(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.P(func(b *sql.Builder) {
		b.WriteString("(").Ident(s.C("audience")).WriteString(" = '[]'::jsonb OR ").Ident(s.C("audience")).WriteString(" @> jsonb_build_array(").Arg(v.Domain.String()).WriteString("::text))")
	})
}

// visibleKey: the viewer's own, those of deployments that they administer, and for a domain admin those of the domain.
func visibleKey(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	t := sql.Table("deployments")
	sub := sql.Select(t.C("id")).From(t)
	sub.Where(bound(v, sub, charged(v, sub)))
	return sql.Or(visibleOwn(v, s), inDomain(v, s), sql.In(s.C("deployment_id"), sub))
}

// visibleImage: the public ones, the viewer's own, those that are shared with their projects, for a
// domain admin those of the domain, and those of sessions that the viewer can see.
func visibleImage(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	projects, own := v.Projects, sql.EQ(s.C("owner_id"), v.User)
	if v.Within != uuid.Nil {
		projects = []uuid.UUID{v.Within}
	}
	t := sql.Table("sessions")
	used := sql.Select(t.C("image_id")).From(t)
	used.Where(bound(v, used, sql.Or(charged(v, used), granted(v, access.Session, used))))
	return sql.Or(
		sql.EQ(s.C("visibility"), "public"), own, inDomain(v, s),
		sql.And(sql.EQ(s.C("visibility"), "project"), sql.In(s.C("project_id"), ids(projects)...)),
		sql.In(s.C("id"), used),
	)
}

// throughImage is the rule of rows that are visible if their image is.
func throughImage(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	images := sql.Table("images")
	sub := sql.Select(images.C("id")).From(images)
	sub.Where(sql.Or(visibleImage(v, sub), granted(v, access.Image, sub)))
	return sql.In(s.C("image_id"), sub)
}

// visibleShared: invitations and shares of the viewer, and the shares of folders that the
// viewer can share.
func visibleShared(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(
		inDomain(v, s), sql.EQ(s.C("user_id"), v.User), sql.In(s.C("vfolder_id"), ownFolders(v)),
		sql.And(sql.EQ(s.C("status"), "pending"), sql.EQ(s.C("email"), strings.ToLower(v.Email)), sql.EQ(s.C("domain_id"), v.Domain)),
	)
}

// ownOrShared: the viewer's own, and those of their domain.
func ownOrShared(v *viewer.Viewer, s *sql.Selector) *sql.Predicate {
	return sql.Or(sql.EQ(s.C("owner_id"), v.User), sql.EQ(s.C("domain_id"), v.Domain))
}

// inDomain matches rows of the domain if the viewer is a domain admin.
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

// Interceptors: one line for each entity says who can read it.
func (Domain) Interceptors() []ent.Interceptor     { return visible(access.Domain, visibleDomain) }
func (Project) Interceptors() []ent.Interceptor    { return visible(access.Project, visibleProject) }
func (Membership) Interceptors() []ent.Interceptor { return visible(access.Project, visibleMembership) }
func (User) Interceptors() []ent.Interceptor       { return visible(access.User, visibleUser) }
func (RoleGrant) Interceptors() []ent.Interceptor  { return visible(access.Role, visibleOwn) }
func (Role) Interceptors() []ent.Interceptor       { return visible(access.Role, visibleRole) }
func (ResourcePolicy) Interceptors() []ent.Interceptor {
	return visible(access.ResourcePolicy, visiblePolicy)
}
func (PolicyAttachment) Interceptors() []ent.Interceptor {
	return visible(access.ResourcePolicy, visibleAttachment)
}
func (AccessToken) Interceptors() []ent.Interceptor  { return visible(access.Credential, visibleOwn) }
func (LoginSession) Interceptors() []ent.Interceptor { return visible(access.Credential, visibleOwn) }
func (Keypair) Interceptors() []ent.Interceptor      { return visible(access.Credential, visibleOwn) }
func (SSHKey) Interceptors() []ent.Interceptor       { return visible(access.Credential, visibleOwn) }
func (RecoveryCode) Interceptors() []ent.Interceptor { return visible(access.Credential, onlySystem) }
func (ExternalIdentity) Interceptors() []ent.Interceptor {
	return visible(access.Credential, visibleOwn)
}
func (LoginAttempt) Interceptors() []ent.Interceptor {
	return visible(access.Credential, visibleAttempt)
}
func (IdentityProvider) Interceptors() []ent.Interceptor { return visible(access.Provider, onlySystem) }
func (Invitation) Interceptors() []ent.Interceptor       { return visible(access.Invitation, inDomain) }
func (ResourceGroup) Interceptors() []ent.Interceptor {
	return visible(access.ResourceGroup, visibleGroup)
}
func (GroupGrant) Interceptors() []ent.Interceptor {
	return visible(access.ResourceGroup, groupGrantedTo)
}
func (ResourcePreset) Interceptors() []ent.Interceptor {
	return visible(access.ResourcePreset, visiblePreset)
}
func (Agent) Interceptors() []ent.Interceptor        { return visible(access.Agent, visibleAgent) }
func (Device) Interceptors() []ent.Interceptor       { return visible(access.Agent, visibleDevice) }
func (ImageCopy) Interceptors() []ent.Interceptor    { return visible(access.Agent, visibleDevice) }
func (SlotType) Interceptors() []ent.Interceptor     { return visible(access.Agent, anyone) }
func (Registry) Interceptors() []ent.Interceptor     { return visible(access.Registry, anyone) }
func (Image) Interceptors() []ent.Interceptor        { return visible(access.Image, visibleImage) }
func (ImageVersion) Interceptors() []ent.Interceptor { return visible(access.Image, throughImage) }
func (ImageBuild) Interceptors() []ent.Interceptor   { return visible(access.Session, charged) }
func (ScanResult) Interceptors() []ent.Interceptor   { return visible(access.Registry, onlySystem) }
func (Session) Interceptors() []ent.Interceptor      { return visible(access.Session, charged) }
func (Kernel) Interceptors() []ent.Interceptor       { return visible(access.Session, charged) }
func (Allocation) Interceptors() []ent.Interceptor   { return visible(access.Session, charged) }
func (SessionEvent) Interceptors() []ent.Interceptor { return visible(access.Session, throughSession) }
func (SessionMount) Interceptors() []ent.Interceptor { return visible(access.Session, throughSession) }
func (AppShare) Interceptors() []ent.Interceptor     { return visible(access.Session, throughSession) }
func (AppPort) Interceptors() []ent.Interceptor      { return visible(access.Session, throughSession) }
func (SessionDependency) Interceptors() []ent.Interceptor {
	return visible(access.Session, throughSession)
}
func (SessionGroup) Interceptors() []ent.Interceptor { return visible(access.Session, charged) }
func (SessionArray) Interceptors() []ent.Interceptor { return visible(access.Session, charged) }
func (SessionTemplate) Interceptors() []ent.Interceptor {
	return visible(access.Template, visibleTemplate)
}
func (Deployment) Interceptors() []ent.Interceptor {
	return visible(access.Deployment, visibleDeployment)
}
func (DeploymentRevision) Interceptors() []ent.Interceptor {
	return visible(access.Deployment, throughDeployment)
}
func (DeploymentReplica) Interceptors() []ent.Interceptor {
	return visible(access.Deployment, throughDeployment)
}
func (DeploymentEvent) Interceptors() []ent.Interceptor {
	return visible(access.Deployment, throughDeployment)
}
func (DeploymentKey) Interceptors() []ent.Interceptor { return visible(access.Credential, visibleKey) }
func (PromptRecord) Interceptors() []ent.Interceptor  { return private(throughOwnDeployment) }
func (Chat) Interceptors() []ent.Interceptor          { return private(ownOrSharedChat) }
func (ChatTurn) Interceptors() []ent.Interceptor      { return private(throughChat) }
func (ChatContent) Interceptors() []ent.Interceptor   { return private(throughChat) }
func (ChatAnswer) Interceptors() []ent.Interceptor    { return private(throughChat) }
func (ChatVote) Interceptors() []ent.Interceptor      { return private(throughChat) }
func (ChatReplay) Interceptors() []ent.Interceptor    { return private(throughChat) }
func (ChatEndpoint) Interceptors() []ent.Interceptor  { return visible(access.System, usableEndpoint) }
func (Notice) Interceptors() []ent.Interceptor        { return private(ownNotice) }
func (NoticeChannel) Interceptors() []ent.Interceptor { return private(ownOrOfCluster) }
func (NoticeDelivery) Interceptors() []ent.Interceptor {
	return private(ownOrOfCluster)
}
func (NoticeSetting) Interceptors() []ent.Interceptor { return private(visibleOwn) }
func (NoticeMark) Interceptors() []ent.Interceptor    { return visible(access.System, onlySystem) }
func (NoticeCursor) Interceptors() []ent.Interceptor  { return visible(access.System, onlySystem) }
func (Announcement) Interceptors() []ent.Interceptor  { return visible(access.System, addressed) }
func (AnnouncementDismissal) Interceptors() []ent.Interceptor {
	return private(visibleOwn)
}
func (ShareWeight) Interceptors() []ent.Interceptor {
	return visible(access.ResourceGroup, visibleShare)
}
func (IdleChecker) Interceptors() []ent.Interceptor {
	return visible(access.ResourceGroup, visibleChecker)
}
func (IdleBinding) Interceptors() []ent.Interceptor   { return visible(access.ResourceGroup, boundHere) }
func (AgentSighting) Interceptors() []ent.Interceptor { return visible(access.System, onlySystem) }

func (IdleActivity) Interceptors() []ent.Interceptor { return visible(access.System, onlySystem) }
func (StorageProxy) Interceptors() []ent.Interceptor { return visible(access.Volume, onlySystem) }
func (Volume) Interceptors() []ent.Interceptor       { return visible(access.Volume, anyone) }
func (VolumeGrant) Interceptors() []ent.Interceptor  { return visible(access.Volume, grantedToOrOpen) }
func (ObjectStorage) Interceptors() []ent.Interceptor {
	return visible(access.ObjectStorage, ownOrShared)
}
func (QuotaScope) Interceptors() []ent.Interceptor      { return visible(access.Vfolder, visibleScope) }
func (Vfolder) Interceptors() []ent.Interceptor         { return visible(access.Vfolder, visibleVfolder) }
func (VfolderShare) Interceptors() []ent.Interceptor    { return visible(access.Vfolder, visibleShared) }
func (VfolderTicket) Interceptors() []ent.Interceptor   { return visible(access.System, onlySystem) }
func (AuditEntry) Interceptors() []ent.Interceptor      { return visible(access.Audit, visibleAudit) }
func (Task) Interceptors() []ent.Interceptor            { return visible(access.Task, visibleTask) }
func (JoinToken) Interceptors() []ent.Interceptor       { return visible(access.System, onlySystem) }
func (Retention) Interceptors() []ent.Interceptor       { return visible(access.System, onlySystem) }
func (ClusterIdentity) Interceptors() []ent.Interceptor { return visible(access.System, onlySystem) }

func (SessionStart) Interceptors() []ent.Interceptor { return visible(access.Session, charged) }
func (SessionUse) Interceptors() []ent.Interceptor   { return visible(access.Session, charged) }
func (CapacitySpan) Interceptors() []ent.Interceptor { return visible(access.System, onlySystem) }
func (Price) Interceptors() []ent.Interceptor        { return visible(access.ResourcePolicy, visiblePrice) }
func (Budget) Interceptors() []ent.Interceptor       { return visible(access.ResourcePolicy, visibleBudget) }
func (Fence) Interceptors() []ent.Interceptor        { return visible(access.System, onlySystem) }
