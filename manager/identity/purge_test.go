package identity_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	entchat "github.com/berthhq/berth/ent/chat"
	"github.com/berthhq/berth/ent/chatturn"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/session"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/task"
)

// blade interrupts a leader at the nth point; 0: never.
type blade struct {
	mu   sync.Mutex
	n    int
	stop context.CancelFunc
}

func (b *blade) pass(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 {
		b.stop()
	}
	return ctx.Err()
}

// morgue is a world in which users are purged. It fakes sessions, which end at the next check, and
// volumes, where the scope that has the bytes of a folder can differ from its row.
type morgue struct {
	*identitytest.World
	*blade
	s       *identity.Service
	tasks   *task.Service
	lies    map[uuid.UUID]uuid.UUID // by folder: owner of the scope that has its bytes
	reports []string
	group   uuid.UUID
	image   uuid.UUID
	volume  uuid.UUID
}

func newMorgue(t *testing.T) *morgue {
	m := &morgue{World: identitytest.New(t), blade: &blade{}, lies: map[uuid.UUID]uuid.UUID{}}
	log := slog.New(slog.DiscardHandler)
	m.Elect(t, 1)
	m.Client.Fence.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
			if err := m.pass(ctx); err != nil {
				return nil, err
			}
			return next.Query(ctx, q)
		})
	}))
	m.tasks = task.New(task.Config{
		Client: m.Client, Bus: event.New(nil, log), Logger: log, Pause: time.Nanosecond,
		Backoff: func(int) time.Duration { return 0 },
	})
	m.s = identity.New(identity.Config{
		Client: m.Client, Passwords: identitytest.Hasher(), Logins: newCut(m.Client), Logger: log,
		Tasks: m.tasks, Sessions: m, Folders: m,
		Purged: func(_ context.Context, by uuid.UUID, who *ent.User, folders string) {
			m.reports = append(m.reports, by.String()+" "+who.Email+" "+folders)
		},
	})
	system := viewer.SystemContext(t.Context())
	registry := m.Client.Registry.Create().SetName("r").SetHost("r").SaveX(system)
	m.image = m.Client.Image.Create().SetReference("r/i:1").SetName("i:1").SetArchitecture("x86_64").SetDigest("-").SetRegistry(registry).SaveX(system).ID
	m.group = m.Client.ResourceGroup.Create().SetName("g").SaveX(system).ID
	proxy := m.Client.StorageProxy.Create().SetName("p").SetVersion("1").SetPublicURL("").SetLastSeenAt(time.Now()).SaveX(system)
	m.volume = m.Client.Volume.Create().SetName("v").SetBackend("vfs").SetProxy(proxy).SaveX(system).ID
	return m
}

// EndOwned ends the sessions whose end the previous call requested.
func (m *morgue) EndOwned(cut context.Context, owner uuid.UUID, _ string) (int, error) {
	ctx := context.WithoutCancel(cut) // interrupted only between steps
	live := session.And(session.OwnerID(owner), session.TerminatedAtIsNil())
	if err := m.pass(cut); err != nil {
		return 0, err
	}
	m.Client.Session.Update().Where(live, session.StatusEQ(lifecycle.Terminating)).
		SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).ExecX(ctx)
	m.Client.Session.Update().Where(live).SetStatus(lifecycle.Terminating).ExecX(ctx)
	if err := m.pass(cut); err != nil {
		return 0, err
	}
	return m.Client.Session.Query().Where(live).Count(ctx)
}

// HandOver moves bytes, then the row.
func (m *morgue) HandOver(cut context.Context, folder, to uuid.UUID) error {
	ctx := context.WithoutCancel(cut) // interrupted only between steps
	if err := m.pass(cut); err != nil {
		return err
	}
	f := m.Client.Vfolder.GetX(ctx, folder)
	m.lies[folder] = to
	if err := m.pass(cut); err != nil {
		return err
	}
	err := f.Update().SetOwnerID(to).SetQuotaScopeID(m.scope(ctx, to)).SetName("got-" + folder.String()).Exec(ctx)
	if err != nil {
		return err
	}
	return m.pass(cut)
}

// Discard marks a folder.
func (m *morgue) Discard(cut context.Context, folder uuid.UUID) error {
	ctx := context.WithoutCancel(cut) // interrupted only between steps
	m.Client.Vfolder.UpdateOneID(folder).SetStatus(vfolder.StatusDeleting).SetDeletedAt(time.Now()).ExecX(ctx)
	return m.pass(cut)
}

// Forget deletes marked folders, and returns how many are left.
func (m *morgue) Forget(cut context.Context, owner uuid.UUID) (int, error) {
	ctx := context.WithoutCancel(cut) // interrupted only between steps
	left := m.Client.Vfolder.Query().Where(vfolder.OwnerID(owner), vfolder.StatusEQ(vfolder.StatusDeleting)).IDsX(ctx)
	for _, one := range left {
		delete(m.lies, one)
		m.Client.Vfolder.UpdateOneID(one).SetStatus(vfolder.StatusDeleted).ExecX(ctx)
	}
	return len(left), m.pass(cut)
}

func (m *morgue) scope(ctx context.Context, holder uuid.UUID) uuid.UUID {
	at, err := m.Client.QuotaScope.Query().Where(quotascope.HolderID(holder)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		at = m.Client.QuotaScope.Create().SetKind(quotascope.KindUser).SetHolderID(holder).SetDomainID(m.A.ID).SetVolumeID(m.volume).SaveX(ctx).ID
	}
	return at
}

// person is a user who can be purged, with one object of every kind.
func (m *morgue) person(t *testing.T, name string, folders int) *ent.User {
	t.Helper()
	ctx := viewer.SystemContext(t.Context())
	u := m.Client.User.Create().SetEmail(name + "@example.org").SetUsername(name).SetFullName("The " + name).SetPasswordHash("x").
		SetDomainID(m.A.ID).SetStatus(user.StatusInactive).SaveX(ctx)
	mark := []byte(name)
	m.Client.Membership.Create().SetUser(u).SetProject(m.A.Project).ExecX(ctx)
	m.Client.LoginSession.Create().SetUser(u).SetHash(mark).SetExpiresAt(time.Now().Add(time.Hour)).ExecX(ctx)
	m.Client.AccessToken.Create().SetUser(u).SetName("t").SetPrefix("t").SetHash(mark).ExecX(ctx)
	m.Client.Keypair.Create().SetUser(u).SetName("k").SetAccessKey(name).SetSecretSealed(mark).ExecX(ctx)
	m.Client.SSHKey.Create().SetUser(u).SetName("s").SetPublicKey(name).SetFingerprint(name).ExecX(ctx)
	m.Client.RecoveryCode.Create().SetUser(u).SetHash(mark).ExecX(ctx)
	m.Client.GroupGrant.Create().SetResourceGroupID(m.group).SetUser(u).ExecX(ctx)
	chat := m.Client.Chat.Create().SetDomainID(m.A.ID).SetOwner(u).SetNextNumber(0).SetAsks([]conversation.Column{}).SaveX(ctx)
	m.Client.ChatTurn.Create().SetChat(chat).SetPrompt(name).ExecX(ctx)
	m.Client.Session.Create().SetName("s").SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{}).
		SetDomainID(m.A.ID).SetProjectID(m.A.Project.ID).SetOwnerID(u.ID).SetResourceGroupID(m.group).SetImageID(m.image).ExecX(ctx)
	for i := range folders {
		f := m.Client.Vfolder.Create().SetID(id.New(id.Vfolder)).SetName(fmt.Sprint("f", i)).SetDomainID(m.A.ID).
			SetCreatorID(u.ID).SetOwnerID(u.ID).SetQuotaScopeID(m.scope(ctx, u.ID)).SaveX(ctx)
		m.lies[f.ID] = u.ID
	}
	return u
}

// lead runs tasks until the given one has ended, or until the leader has passed n points.
func (m *morgue) lead(t *testing.T, one uuid.UUID, n int) (cut bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Timeout)
	defer cancel()
	m.mu.Lock()
	m.n, m.stop = n, cancel
	m.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); m.tasks.Lead(ctx, 1) }()
	system := viewer.SystemContext(t.Context())
	for ctx.Err() == nil && m.Client.Task.GetX(system, one).EndedAt == nil {
		time.Sleep(time.Millisecond)
	}
	cut = ctx.Err() != nil
	cancel()
	<-done
	return cut
}

// A purge that is interrupted at any point and repeated has the same result as an uninterrupted
// one.
func TestPurgeIsCutAnywhere(t *testing.T) {
	for name, in := range map[string]func(m *morgue) identity.DeleteUserInput{
		"folders are handed over": func(m *morgue) identity.DeleteUserInput { return identity.DeleteUserInput{FoldersTo: &m.A.Member.ID} },
		"folders are deleted":     func(*morgue) identity.DeleteUserInput { return identity.DeleteUserInput{DeleteFolders: ptr(true)} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMorgue(t)
			points := 0
			for cut := true; cut; {
				points++
				u := m.person(t, fmt.Sprint("u", points), 2)
				in := in(m)
				in.ID = u.ID
				p, err := m.s.DeleteUser(m.As(t, m.A.Admin), in)
				if err != nil {
					t.Fatal(err)
				}
				if cut = m.lead(t, p.Task.ID, points); cut {
					m.lead(t, p.Task.ID, 0)
				}
				m.purged(t, u, p.Task.ID, in.FoldersTo)
				if t.Failed() {
					t.Fatalf("cut at point %d", points)
				}
			}
			if points < 15 {
				t.Errorf("a purge passes only %d points", points)
			}
			t.Logf("cut at %d points", points-1)
		})
	}
}

// purged checks what remains of a user.
func (m *morgue) purged(t *testing.T, u *ent.User, one uuid.UUID, heir *uuid.UUID) {
	t.Helper()
	ctx := viewer.SystemContext(t.Context())
	if got := m.Client.Task.GetX(ctx, one); got.Status != enttask.StatusDone || got.Done != got.Total || got.Message != "" {
		t.Errorf("the task is %v", got)
	}
	after := m.Client.User.GetX(ctx, u.ID) // a session refers to the user
	if after.Username != "deleted-"+u.ID.String() || after.FullName != fmt.Sprintf("%s <%s>", u.FullName, u.Email) || strings.Contains(after.Email, u.Username+"@") {
		t.Errorf("the user is now %v", after)
	}
	left := m.Client.Chat.Query().Where(entchat.OwnerID(u.ID)).CountX(ctx) + m.Client.ChatTurn.Query().Where(chatturn.Prompt(u.Username)).CountX(ctx) +
		m.Client.LoginSession.Query().Where(loginsession.UserID(u.ID)).CountX(ctx) +
		m.Client.AccessToken.Query().Where(accesstoken.UserID(u.ID)).CountX(ctx) +
		m.Client.Keypair.Query().Where(keypair.UserID(u.ID)).CountX(ctx) +
		m.Client.Membership.Query().Where(membership.UserID(u.ID)).CountX(ctx) +
		u.QuerySSHKeys().CountX(ctx) + u.QueryRecoveryCodes().CountX(ctx) + u.QueryRoleGrants().CountX(ctx)
	if left != 0 {
		t.Errorf("%d credentials and memberships are left", left)
	}
	if n := m.Client.Session.Query().Where(session.OwnerID(u.ID), session.TerminatedAtIsNil()).CountX(ctx); n != 0 {
		t.Errorf("%d sessions live", n)
	}
	for _, f := range m.Client.Vfolder.Query().Where(vfolder.CreatorID(u.ID)).AllX(ctx) {
		lies, there := m.lies[f.ID]
		switch {
		case heir == nil && (there || f.Status != vfolder.StatusDeleted):
			t.Errorf("folder %s is not deleted: %v", f.Name, f)
		case heir != nil && (lies != *heir || *f.OwnerID != *heir || f.QuotaScopeID != m.scope(ctx, *heir)):
			t.Errorf("folder %s is not handed over: bytes at %s, row %v", f.Name, lies, f)
		}
	}
	fate := "2 folders deleted"
	if heir != nil {
		fate = "2 folders to " + m.A.Member.Email
	}
	if said := m.A.Admin.ID.String() + " " + u.Email + " " + fate; len(m.reports) == 0 || m.reports[len(m.reports)-1] != said {
		t.Errorf("told %q, want %q", m.reports, said)
	}
}

func TestPurgeLeavesNothingOfWhoDidNothing(t *testing.T) {
	m := newMorgue(t)
	ctx := viewer.SystemContext(t.Context())
	u := m.person(t, "nobody", 0)
	m.Client.Session.Delete().Where(session.OwnerID(u.ID)).ExecX(ctx)
	served := serve(t, m.World, &m.A, u)
	_, err := m.s.DeleteUser(m.As(t, m.A.Admin), identity.DeleteUserInput{ID: u.ID})
	if p, _ := problem.From(err); !strings.Contains(p.Message, "owns 1 deployment, served among them") {
		t.Errorf("the owner of a deployment: %v", err)
	}
	served.Update().SetEndedAt(time.Now()).ExecX(ctx)
	p, err := m.s.DeleteUser(m.As(t, m.A.Admin), identity.DeleteUserInput{ID: u.ID})
	if err != nil {
		t.Fatal(err)
	}
	m.lead(t, p.Task.ID, 0)
	if m.Client.User.Query().Where(user.ID(u.ID)).ExistX(ctx) {
		t.Error("the row of the purged user exists")
	}
	if _, err := m.s.CreateUser(m.As(t, m.A.Admin), identity.CreateUserInput{Email: u.Email, Username: u.Username, Password: "a good password", Domain: m.A.ID}); err != nil {
		t.Error("the names of the purged user are not free:", err)
	}
}

// serve creates a deployment.
func serve(t *testing.T, w *identitytest.World, d *identitytest.Domain, owner *ent.User) *ent.Deployment {
	t.Helper()
	return w.Client.Deployment.Create().SetName("served").SetDomainID(d.ID).SetProject(d.Project).SetOwner(owner).SetWanted(1).SetCurrent(1).SetTarget(1).
		SetStrategy([]byte(`{}`)).SetScaling([]byte(`{}`)).SetProgress([]byte(`{}`)).SaveX(viewer.SystemContext(t.Context()))
}

func TestPurgeIsRefused(t *testing.T) {
	m := newMorgue(t)
	ctx := viewer.SystemContext(t.Context())
	rich, idle := m.person(t, "rich", 3), m.person(t, "idle", 0)
	busy := m.person(t, "busy", 1)
	m.Client.User.UpdateOne(busy).SetStatus(user.StatusActive).ExecX(ctx)
	dead := m.person(t, "dead", 0)
	m.Client.User.UpdateOne(dead).SetUsername("deleted-" + dead.ID.String()).ExecX(ctx)
	m.Client.User.UpdateOne(m.B.Loner).SetStatus(user.StatusInactive).ExecX(ctx)
	boss := m.person(t, "boss", 0)
	m.Client.User.UpdateOne(boss).SetRole(user.RoleSuperadmin).ExecX(ctx)
	type input = identity.DeleteUserInput
	for _, c := range []struct {
		name                  string
		as                    *ent.User
		in                    input
		code, field, wantText string
	}{
		{"by a plain user", m.A.Member, input{ID: idle.ID}, problem.CodePermissionDenied, "", ""},
		{"by a project admin", m.A.Lead, input{ID: idle.ID}, problem.CodePermissionDenied, "", ""},
		{"by a monitor", m.Monitor, input{ID: idle.ID}, problem.CodePermissionDenied, "", ""},
		{"by another domain's admin", m.B.Admin, input{ID: idle.ID}, problem.CodeNotFound, "id", ""},
		{"a superadmin by a domain admin", m.A.Admin, input{ID: boss.ID}, problem.CodePermissionDenied, "role", ""},
		{"nobody", m.Superadmin, input{ID: uuid.New()}, problem.CodeNotFound, "id", ""},
		{"the last superadmin", m.Superadmin, input{ID: m.Superadmin.ID}, problem.CodeFailedPrecondition, "", "last active superadmin"},
		{"both ways", m.Superadmin, input{ID: rich.ID, FoldersTo: &m.A.Lead.ID, DeleteFolders: ptr(true)}, problem.CodeInvalidArgument, "deleteFolders", ""},
		{"folders, without a decision", m.Superadmin, input{ID: rich.ID}, problem.CodeFailedPrecondition, "foldersTo", "owns 3 folders"},
		{"active, with a folder", m.Superadmin, input{ID: busy.ID}, problem.CodeFailedPrecondition, "id", "the user is active: deactivate or delete them first; the user owns 1 folder"},
		{"to himself", m.Superadmin, input{ID: rich.ID, FoldersTo: &rich.ID}, problem.CodeInvalidArgument, "foldersTo", ""},
		{"to a user of another domain", m.A.Admin, input{ID: rich.ID, FoldersTo: &m.B.Member.ID}, problem.CodeNotFound, "foldersTo", ""},
		{"to another domain", m.Superadmin, input{ID: rich.ID, FoldersTo: &m.B.Member.ID}, problem.CodeInvalidArgument, "foldersTo", "same domain"},
		{"to an inactive one", m.Superadmin, input{ID: rich.ID, FoldersTo: &idle.ID}, problem.CodeFailedPrecondition, "foldersTo", ""},
		{"to a purged user", m.Superadmin, input{ID: dead.ID}, problem.CodeFailedPrecondition, "id", "was purged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := m.s.DeleteUser(m.As(t, c.as), c.in)
			want(t, err, c.code, c.field)
			if p, _ := problem.From(err); !strings.Contains(p.Message, c.wantText) {
				t.Errorf("got %q, want %q", p.Message, c.wantText)
			}
		})
	}
	if n := m.Client.Task.Query().CountX(ctx); n != 0 {
		t.Errorf("%d tasks were begun", n)
	}
}

// During a purge, the user can neither be changed nor purged again. After a cancellation, the user
// can be activated again.
func TestPurgeUnderWay(t *testing.T) {
	m := newMorgue(t)
	u := m.person(t, "u", 0)
	root := m.As(t, m.Superadmin)
	p, err := m.s.DeleteUser(root, identity.DeleteUserInput{ID: u.ID})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.s.DeleteUser(root, identity.DeleteUserInput{ID: u.ID})
	want(t, err, problem.CodeFailedPrecondition, "id")
	back := identity.UpdateUserInput{ID: u.ID, Status: ptr(user.StatusActive)}
	_, err = m.s.UpdateUser(root, back)
	want(t, err, problem.CodeFailedPrecondition, "id")
	if _, err := m.tasks.CancelTask(root, task.CancelTaskInput{ID: p.Task.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err = m.s.UpdateUser(root, back); err != nil {
		t.Fatal(err)
	}
	// The repeated task finds the user active and removes nothing.
	if _, err := m.tasks.RetryTask(root, task.RetryTaskInput{ID: p.Task.ID}); err != nil {
		t.Fatal(err)
	}
	m.lead(t, p.Task.ID, 0)
	ctx := viewer.SystemContext(t.Context())
	if got := m.Client.Task.GetX(ctx, p.Task.ID); got.Status != enttask.StatusFailed || !strings.Contains(got.Message, "active again") {
		t.Errorf("the task is %v", got)
	}
	if !m.Client.Keypair.Query().Where(keypair.UserID(u.ID)).ExistX(ctx) {
		t.Error("the keypair of the user does not exist")
	}
}

// If two superadmins deactivate each other at the same time, one stays active.
func TestPurgeOfSuperadminsAtOnce(t *testing.T) {
	m := newMorgue(t)
	ctx := viewer.SystemContext(t.Context())
	for i := range 8 {
		other := m.person(t, fmt.Sprint("root", i), 0)
		m.Client.User.UpdateOne(other).SetRole(user.RoleSuperadmin).SetStatus(user.StatusActive).ExecX(ctx)
		m.Client.User.UpdateOneID(m.Superadmin.ID).SetStatus(user.StatusActive).ExecX(ctx)
		away := func(as context.Context, id uuid.UUID) {
			_, _ = m.s.UpdateUser(as, identity.UpdateUserInput{ID: id, Status: ptr(user.StatusDeleted)})
			_, _ = m.s.DeleteUser(as, identity.DeleteUserInput{ID: id})
		}
		one, two := m.As(t, m.Superadmin), m.As(t, other)
		var wg sync.WaitGroup
		wg.Go(func() { away(one, other.ID) })
		wg.Go(func() { away(two, m.Superadmin.ID) })
		wg.Wait()
		for _, task := range m.Client.Task.Query().Where(enttask.EndedAtIsNil()).IDsX(ctx) {
			m.lead(t, task, 0)
		}
		left := m.Client.User.Query().Where(user.RoleEQ(user.RoleSuperadmin), user.StatusEQ(user.StatusActive)).AllX(ctx)
		if len(left) != 1 {
			t.Fatalf("%d superadmins are left, want 1", len(left))
		}
		m.Superadmin = left[0]
	}
}

// A domain can be deleted when all of its users are purged.
func TestPurgeOfADomainOfTheDead(t *testing.T) {
	m := newMorgue(t)
	ctx := viewer.SystemContext(t.Context())
	m.Client.User.Update().Where(user.DomainID(m.B.ID)).SetStatus(user.StatusInactive).ExecX(ctx)
	root := m.As(t, m.Superadmin)
	m.Client.Session.Create().SetName("s").SetType("batch").SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).SetSlots(resource.Slots{}).
		SetDomainID(m.B.ID).SetProjectID(m.B.Project.ID).SetOwnerID(m.B.Member.ID).SetResourceGroupID(m.group).SetImageID(m.image).ExecX(ctx)
	for _, u := range []*ent.User{m.B.Admin, m.B.Lead, m.B.Member, m.B.Loner} {
		p, err := m.s.DeleteUser(root, identity.DeleteUserInput{ID: u.ID})
		if err != nil {
			t.Fatal(err)
		}
		m.lead(t, p.Task.ID, 0)
	}
	if n := m.Client.User.Query().Where(user.DomainID(m.B.ID)).CountX(ctx); n != 1 {
		t.Errorf("%d rows are left, want that of the session's owner", n)
	}
	if n := m.Client.User.Query().Where(user.DomainID(m.B.ID), identity.Present()).CountX(ctx); n != 0 {
		t.Errorf("%d users are present", n)
	}
	if _, err := m.s.DeleteProject(root, identity.DeleteProjectInput{ID: m.B.Project.ID, Name: "project"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.s.DeleteDomain(root, identity.DeleteDomainInput{ID: m.B.ID, Name: "b"}); err != nil {
		t.Error(err)
	}
}
