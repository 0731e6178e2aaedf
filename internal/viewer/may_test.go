package viewer_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/viewer"
)

var (
	me, other           = uuid.New(), uuid.New()
	mine, theirs        = uuid.New(), uuid.New() // domains
	project, elsewhere  = uuid.New(), uuid.New()
	ownSession          = access.Object{ID: uuid.New(), Domain: mine, Project: project, Owner: me}
	colleaguesSession   = access.Object{ID: uuid.New(), Domain: mine, Project: project, Owner: other}
	domainsSession      = access.Object{ID: uuid.New(), Domain: mine, Project: elsewhere, Owner: other}
	strangersSession    = access.Object{ID: uuid.New(), Domain: theirs, Project: uuid.New(), Owner: other}
	objectOfNobody      = access.Object{ID: uuid.New()}
	everything          = []access.Operation{access.Read, access.Create, access.Update, access.Delete, access.Enter}
	nothing             = []access.Operation{}
	readUpdateDelete    = []access.Operation{access.Read, access.Update, access.Delete}
	allButEnter         = []access.Operation{access.Read, access.Create, access.Update, access.Delete}
	readOnly, enterOnly = []access.Operation{access.Read}, []access.Operation{access.Enter}
)

func user(change func(*viewer.Viewer)) *viewer.Viewer {
	v := &viewer.Viewer{User: me, Domain: mine, Role: viewer.RoleUser, Projects: []uuid.UUID{project}}
	if change != nil {
		change(v)
	}
	return v
}

func grant(scope access.Scope, id uuid.UUID, ops ...access.Operation) func(*viewer.Viewer) {
	return func(v *viewer.Viewer) {
		v.Grants = []access.RoleGrant{{Scope: scope, ID: id, Permissions: access.Permissions{access.Session: ops}}}
	}
}

func TestPermissionsOnSessions(t *testing.T) {
	admin := func(v *viewer.Viewer) { v.Role = viewer.RoleAdmin }
	for _, c := range []struct {
		name string
		who  *viewer.Viewer
		on   access.Object
		want []access.Operation
	}{
		{"own", user(nil), ownSession, everything},
		{"a colleague's", user(nil), colleaguesSession, nothing},
		{"a stranger's", user(nil), strangersSession, nothing},
		{"project admin", user(func(v *viewer.Viewer) { v.Admins = v.Projects }), colleaguesSession, readUpdateDelete},
		{"domain admin", user(admin), domainsSession, readUpdateDelete},
		{"domain admin elsewhere", user(admin), strangersSession, nothing},
		{"superadmin", user(func(v *viewer.Viewer) { v.Role = viewer.RoleSuperadmin }), ownSession, everything},
		{"superadmin elsewhere", user(func(v *viewer.Viewer) { v.Role = viewer.RoleSuperadmin }), strangersSession, allButEnter},
		{"superadmin with a custom role", user(func(v *viewer.Viewer) {
			v.Role = viewer.RoleSuperadmin
			grant(access.OnSystem, uuid.Nil, access.Enter)(v)
		}), strangersSession, everything},
		{"monitor", user(func(v *viewer.Viewer) { v.Role = viewer.RoleMonitor }), ownSession, readOnly},
		{"anonymous", viewer.Anonymous(), objectOfNobody, nothing},
		{"a user who must change the password", user(func(v *viewer.Viewer) { v.Due = viewer.DuePassword }), ownSession, nothing},
		{"custom role on the system", user(grant(access.OnSystem, uuid.Nil, access.Enter)), strangersSession, enterOnly},
		{"custom role on the domain", user(grant(access.OnDomain, mine, access.Read)), domainsSession, readOnly},
		{"custom role on another domain", user(grant(access.OnDomain, theirs, access.Read)), domainsSession, nothing},
		{"custom role on the project", user(grant(access.OnProject, elsewhere, access.Read)), domainsSession, readOnly},
		{"custom role on the object", user(grant(access.OnObject, strangersSession.ID, access.Read)), strangersSession, readOnly},
		{"custom role on no object", user(grant(access.OnObject, uuid.Nil, access.Read)), access.Object{}, nothing},
		{"token that reads", user(func(v *viewer.Viewer) { v.Scopes = []access.TokenScope{access.TokenRead} }), ownSession, readOnly},
		{"token for sessions", user(func(v *viewer.Viewer) { v.Scopes = []access.TokenScope{access.TokenSessions} }), ownSession, everything},
		{"token of another project", user(func(v *viewer.Viewer) { v.Within = elsewhere }), ownSession, nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.who.Permissions(access.Session, c.on); !slices.Equal(got, c.want) {
				t.Errorf("may %v, want %v", got, c.want)
			}
		})
	}
}

// The table of the built-in roles permits plain users nothing on objects without an owner, except
// to read objects that are open to everyone.
func TestDeniesByDefault(t *testing.T) {
	open := map[access.Entity]bool{access.ResourcePreset: true, access.Registry: true, access.Image: true, access.Volume: true}
	for _, e := range access.Entities() {
		for _, op := range access.Operations() {
			if user(nil).May(op, e, objectOfNobody) && !(open[e] && op == access.Read) {
				t.Errorf("everybody may %s a %s", op, e)
			}
			if user(nil).May(op, e, access.Object{ID: uuid.New(), Domain: theirs, Project: uuid.New(), Owner: other}) && !(open[e] && op == access.Read) {
				t.Errorf("everyone can %s another user's %s", op, e)
			}
			if monitor := user(func(v *viewer.Viewer) { v.Role = viewer.RoleMonitor }); monitor.May(op, e, ownSession) != (op == access.Read || e == access.Credential && access.Applies(op, e)) {
				t.Errorf("a monitor and %s of %s", op, e)
			}
		}
	}
}
