// Package identitytest provides tests of the manager's services with a database and users: two
// domains, each with an admin, a project, its project admin and a member. Only tests import
// it.
package identitytest

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/migrate"
	_ "github.com/berthhq/berth/ent/runtime" // registers row rules and defaults
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/store"
)

// Password is the password of every user of a World.
const Password = "a good password"

// Hasher is a fast hasher, only for tests.
func Hasher() *password.Hasher {
	return password.NewHasher(password.Cost{Memory: 64, Time: 1, Threads: 1})
}

// Client opens an empty database with the schema, which is dropped after the test.
func Client(t testing.TB) *ent.Client {
	t.Helper()
	client, _ := Store(t)
	return client
}

// Store is Client, plus the database connection.
func Store(t testing.TB) (*ent.Client, *sql.DB) {
	t.Helper()
	dsn := testenv.PostgresFrom(t, "schema", func(ctx context.Context, dsn string) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		return migrate.Up(ctx, db, migrate.Files())
	})
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	client := store.Open(db)
	t.Cleanup(func() { client.Close() })
	return client, db
}

// World is a superadmin, a monitor and two domains that cannot see each other.
type World struct {
	Client     *ent.Client
	Superadmin *ent.User
	Monitor    *ent.User
	A, B       Domain
}

// Domain is a domain with users.
type Domain struct {
	*ent.Domain
	Project *ent.Project
	Admin   *ent.User // domain admin, member of no project
	Lead    *ent.User // project admin
	Member  *ent.User
	Loner   *ent.User // member of no project
}

// New fills a new database.
func New(t testing.TB) *World {
	t.Helper()
	return Fill(t, Client(t))
}

// Fill creates the users in an empty database.
func Fill(t testing.TB, client *ent.Client) *World {
	t.Helper()
	w := &World{Client: client}
	hash, err := Hasher().Hash(t.Context(), Password)
	if err != nil {
		t.Fatal(err)
	}
	m := maker{t, w.Client, viewer.SystemContext(t.Context()), hash}
	w.A, w.B = m.domain("a"), m.domain("b")
	w.Superadmin = m.user(w.A.Domain, "root", user.RoleSuperadmin)
	w.Monitor = m.user(w.A.Domain, "monitor", user.RoleMonitor)
	return w
}

type maker struct {
	t      testing.TB
	client *ent.Client
	ctx    context.Context
	hash   string
}

func (m maker) domain(name string) Domain {
	d := Domain{Domain: m.client.Domain.Create().SetName(name).SaveX(m.ctx)}
	d.Project = m.client.Project.Create().SetName("project").SetDomainID(d.ID).SaveX(m.ctx)
	d.Admin = m.user(d.Domain, "admin-"+name, user.RoleAdmin)
	d.Lead = m.user(d.Domain, "lead-"+name, user.RoleUser)
	d.Member = m.user(d.Domain, "member-"+name, user.RoleUser)
	d.Loner = m.user(d.Domain, "loner-"+name, user.RoleUser)
	m.client.Membership.Create().SetUser(d.Lead).SetProject(d.Project).SetAdmin(true).ExecX(m.ctx)
	m.client.Membership.Create().SetUser(d.Member).SetProject(d.Project).ExecX(m.ctx)
	return d
}

func (m maker) user(d *ent.Domain, name string, role user.Role) *ent.User {
	return m.client.User.Create().
		SetEmail(name + "@example.org").SetUsername(name).SetPasswordHash(m.hash).SetRole(role).SetDomainID(d.ID).
		SaveX(m.ctx)
}

// As returns a context with u as the viewer.
func (w *World) As(t testing.TB, u *ent.User) context.Context {
	t.Helper()
	return viewer.With(t.Context(), w.Viewer(t, u))
}

// Elect makes epoch the epoch of the current leader.
func (w *World) Elect(t testing.TB, epoch int64) {
	t.Helper()
	elected := func(context.Context) error { return nil }
	if _, err := leader.RaiseFence(viewer.SystemContext(t.Context()), w.Client, epoch, elected); err != nil {
		t.Fatal(err)
	}
}

// Viewer returns u as a viewer with their current memberships.
func (w *World) Viewer(t testing.TB, u *ent.User) *viewer.Viewer {
	t.Helper()
	system := viewer.SystemContext(t.Context())
	u = w.Client.User.GetX(system, u.ID)
	v := &viewer.Viewer{User: u.ID, Email: u.Email, Domain: u.DomainID, Role: viewer.Role(u.Role), Credential: id.New(id.LoginSession)}
	for _, m := range w.Client.Membership.Query().Where(membership.UserID(u.ID)).AllX(system) {
		v.Projects = append(v.Projects, m.ProjectID)
		if m.Admin {
			v.Admins = append(v.Admins, m.ProjectID)
		}
	}
	return v
}
