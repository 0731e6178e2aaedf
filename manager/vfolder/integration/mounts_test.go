package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// loft is a cluster with a volume and a machine that mounts it. A member of a project shares a
// folder with the project's lead.
type loft struct {
	*clustertest.Cluster
	depot  *clustertest.Proxy
	friend *managertest.Client
	folder uuid.UUID
	share  uuid.UUID
}

func newLoft(t *testing.T, permission string) *loft {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	l := &loft{Cluster: clustertest.New(t, 0)}
	l.depot, l.friend = clustertest.NewProxy(t, l.Cluster), l.Manager.As(t, l.A.Lead)
	var errs managertest.Errors
	if l.folder, errs = clustertest.CreateFolder(t, l.Member, managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	l.invite(t, permission)
	return l
}

func (l *loft) invite(t *testing.T, permission string) {
	t.Helper()
	var got shareResults
	l.Member.Must(t, shareFolder, managertest.Vars{"id": l.folder, "emails": []string{l.A.Lead.Email}, "p": permission}, &got)
	l.share = got.ShareVfolder.Results[0].Share.ID
	l.change(t, l.friend, "acceptVfolderShare", "")
}

// change changes the share.
func (l *loft) change(t *testing.T, as *managertest.Client, mutation, more string) {
	t.Helper()
	as.Must(t, `mutation($id: ID!) { `+mutation+`(input: {id: $id`+more+`}) { share { status } } }`, managertest.Vars{"id": l.share}, nil)
}

// machine joins a machine that mounts the volume.
func (l *loft) machine(t *testing.T) *clustertest.Node {
	t.Helper()
	n := &clustertest.Node{Name: string(rune('a' + len(l.Nodes))), Dir: t.TempDir(), Network: clustertest.NewFakeNetwork(len(l.Nodes)), Host: fake.NewHost(clustertest.PulledImage()),
		Volumes: map[string]string{"main": l.depot.Root}}
	l.Nodes = append(l.Nodes, n)
	l.Join(t, n, l.Manager)
	return n
}

// start creates a session that mounts folders.
func (l *loft) start(t *testing.T, as *managertest.Client, mounts ...managertest.Vars) uuid.UUID {
	t.Helper()
	id, errs := clustertest.TryCreate(t, as, clustertest.SessionInput(managertest.Vars{"mounts": mounts}, "sleep", "600"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return id
}

// has waits until the container of a session has the given mounts.
func (l *loft) has(t *testing.T, on *clustertest.Node, id uuid.UUID, want map[string]string) {
	t.Helper()
	k := l.Client.Kernel.Query().Where(kernel.SessionID(id)).OnlyIDX(l.System(t))
	managertest.Eventually(t, "the session has the folders that are right", func() bool {
		return cmp.Equal(want, on.Host.Folders(k.String()))
	})
	managertest.Eventually(t, "it is settled", func() bool {
		return !l.Client.SessionMount.Query().Where(sessionmount.SessionID(id), sessionmount.Settled(false)).ExistX(l.System(t))
	})
}

// historyHas checks for an entry in the history of a session.
func (l *loft) historyHas(t *testing.T, id uuid.UUID, text string) {
	t.Helper()
	if h := l.History(t, id); !strings.Contains(h, text) {
		t.Errorf("no %q in\n%s", text, h)
	}
}

func (l *loft) mount(t *testing.T, id uuid.UUID) *ent.SessionMount {
	t.Helper()
	return l.Client.SessionMount.Query().Where(sessionmount.SessionID(id), sessionmount.VfolderID(l.folder)).OnlyX(l.System(t))
}

// A user with a share reads, gets the permission to write, writes, and loses the folder while the
// machine is disconnected.
func TestMountsFollowTheirOwnersRights(t *testing.T) {
	l := newLoft(t, "READ_ONLY")
	n := l.machine(t)
	if _, errs := clustertest.CreateFolder(t, l.friend, managertest.Vars{"name": "mine"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	data, mine := managertest.Vars{"vfolder": "data"}, managertest.Vars{"vfolder": "mine"}
	works := l.start(t, l.friend, data, mine)
	reads := l.start(t, l.friend, managertest.Vars{"vfolder": "data", "readOnly": true, "target": "/home/work/in"})
	owners := l.start(t, l.Member, data)
	for _, id := range []uuid.UUID{works, reads, owners} {
		l.WaitFor(t, id, lifecycle.Running)
	}
	l.has(t, n, works, map[string]string{"/home/work/data": "ro", "/home/work/mine": "rw"})
	l.change(t, l.Member, "updateVfolderShare", ", permission: READ_WRITE")
	l.has(t, n, works, map[string]string{"/home/work/data": "rw", "/home/work/mine": "rw"})
	l.change(t, l.Member, "updateVfolderShare", ", permission: READ_ONLY")
	l.has(t, n, works, map[string]string{"/home/work/data": "ro", "/home/work/mine": "rw"})
	l.change(t, l.Member, "updateVfolderShare", ", permission: READ_WRITE")
	l.has(t, n, works, map[string]string{"/home/work/data": "rw", "/home/work/mine": "rw"})
	l.has(t, n, reads, map[string]string{"/home/work/in": "ro"}) // as requested

	n.Stop()
	l.change(t, l.Member, "revokeVfolderShare", "")
	managertest.Eventually(t, "the mount is revoked", func() bool { return l.mount(t, works).RevokedAt != nil })
	if m := l.mount(t, works); m.Settled {
		t.Error("settled by a disconnected agent")
	}
	l.Join(t, n, l.Manager)
	l.has(t, n, works, map[string]string{"/home/work/mine": "rw"})
	l.has(t, n, reads, map[string]string{})
	l.has(t, n, owners, map[string]string{"/home/work/data": "rw"})

	var got struct {
		Node struct {
			Mounts []struct {
				Target    string
				RevokedAt *string
			}
			History []struct{ Code, Message string }
		}
	}
	l.friend.Must(t, `query($id: ID!) { node(id: $id) { ... on Session { mounts { target revokedAt } history { code message } } } }`, managertest.Vars{"id": works}, &got)
	for _, m := range got.Node.Mounts {
		if (m.RevokedAt != nil) != (m.Target == "/home/work/data") {
			t.Errorf("mount %+v", m)
		}
	}
	var codes []string
	for _, e := range got.Node.History {
		if strings.HasPrefix(e.Code, "folder_") {
			codes = append(codes, e.Code)
		}
	}
	want := []string{"folder_writable", "folder_read_only", "folder_writable", "folder_revoked"}
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("%s\n%s", diff, l.History(t, works))
	}
	l.historyHas(t, works, "folder data is no longer shared with the session's owner: /home/work/data is empty")

	l.invite(t, "READ_WRITE") // a session that lost it does not get it back
	again := l.start(t, l.friend, data)
	l.WaitFor(t, again, lifecycle.Running)
	l.has(t, n, again, map[string]string{"/home/work/data": "rw"})
	l.has(t, n, works, map[string]string{"/home/work/mine": "rw"})
	l.CheckInvariants(t, false)
}

// The leader is killed before it has notified the machine.
func TestTheNextLeaderSettlesMounts(t *testing.T) {
	l := newLoft(t, "READ_WRITE")
	second := l.Start(t)
	n := l.machine(t)
	managertest.Eventually(t, "the second manager reaches it", func() bool { return second.Reaches(n.Name) })
	id := l.start(t, l.friend, managertest.Vars{"vfolder": "data"})
	l.WaitFor(t, id, lifecycle.Running)
	l.has(t, n, id, map[string]string{"/home/work/data": "rw"})
	n.Stop()
	l.Member = second.As(t, l.A.Member)
	l.change(t, l.Member, "updateVfolderShare", ", permission: READ_ONLY")
	managertest.Eventually(t, "the mount is to be read-only", func() bool { return l.mount(t, id).ReadOnly })
	l.Manager.Kill()
	l.Manager = second
	l.Join(t, n, l.Manager)
	l.has(t, n, id, map[string]string{"/home/work/data": "ro"})
}

// The permissions at the start of a waiting session determine its mounts.
func TestMountsOfWhatWaits(t *testing.T) {
	l := newLoft(t, "READ_WRITE")
	l.Grow(t, 1) // a machine without the volume
	data := managertest.Vars{"vfolder": "data"}
	id := l.start(t, l.friend, data)
	kept := l.start(t, l.friend, managertest.Vars{"vfolder": "data", "target": "/home/work/kept"})
	l.change(t, l.Member, "revokeVfolderShare", "")
	managertest.Eventually(t, "the mount is revoked", func() bool { return l.mount(t, id).RevokedAt != nil && l.mount(t, kept).RevokedAt != nil })
	l.invite(t, "READ_ONLY")
	managertest.Eventually(t, "the mount is back", func() bool {
		m := l.mount(t, kept)
		return l.mount(t, id).RevokedAt == nil && m.RevokedAt == nil && m.ReadOnly
	})
	if s := l.Session(t, kept); s.Status != lifecycle.Pending {
		t.Fatalf("it is %s", s.Status)
	}
	n := l.machine(t)
	l.WaitFor(t, kept, lifecycle.Running)
	l.has(t, n, kept, map[string]string{"/home/work/kept": "ro"})
	for _, code := range []string{"folder_revoked", "the session starts without", "folder_returned"} {
		if h := l.History(t, kept); !strings.Contains(h, code) {
			t.Errorf("no %s in\n%s", code, h)
		}
	}
}

// A folder whose permission was revoked before the session starts is left out.
func TestRevokedMountIsLeftOut(t *testing.T) {
	l := newLoft(t, "READ_WRITE")
	l.Grow(t, 1)
	if _, errs := clustertest.CreateFolder(t, l.friend, managertest.Vars{"name": "mine"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	id := l.start(t, l.friend, managertest.Vars{"vfolder": "data"}, managertest.Vars{"vfolder": "mine"})
	l.change(t, l.Member, "revokeVfolderShare", "")
	managertest.Eventually(t, "the mount is revoked", func() bool { return l.mount(t, id).RevokedAt != nil })
	n := l.machine(t)
	l.WaitFor(t, id, lifecycle.Running)
	l.has(t, n, id, map[string]string{"/home/work/mine": "rw"})
}

// Mounts of a project's folder in sessions of its members.
func TestMountsOfAProjectsFolder(t *testing.T) {
	l := newLoft(t, "READ_WRITE")
	n := l.machine(t)
	lead, member := l.friend, l.Member
	team, errs := clustertest.CreateFolder(t, lead, managertest.Vars{"name": "team", "project": l.A.Project.ID})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	id := l.start(t, member, managertest.Vars{"vfolder": "team"})
	leads := l.start(t, lead, managertest.Vars{"vfolder": "team"})
	l.WaitFor(t, id, lifecycle.Running)
	l.WaitFor(t, leads, lifecycle.Running)
	l.has(t, n, id, map[string]string{"/home/work/team": "rw"})
	permission := func(p string) {
		t.Helper()
		lead.Must(t, `mutation($id: ID!, $p: FolderPermission) { updateVfolder(input: {id: $id, permission: $p}) { vfolder { name } } }`,
			managertest.Vars{"id": team, "p": p}, nil)
	}
	permission("READ_ONLY")
	l.has(t, n, id, map[string]string{"/home/work/team": "ro"})
	permission("READ_WRITE")
	l.has(t, n, id, map[string]string{"/home/work/team": "rw"})
	lead.Must(t, `mutation($p: ID!, $u: ID!) { removeMembership(input: {project: $p, user: $u}) { project { id } } }`,
		managertest.Vars{"p": l.A.Project.ID, "u": l.A.Member.ID}, nil)
	l.has(t, n, id, map[string]string{})
	l.historyHas(t, id, "folder team belongs to a project of which the session's owner is no longer a member: /home/work/team is empty")
	l.has(t, n, leads, map[string]string{"/home/work/team": "rw"})
}

// In the running sessions of a deactivated user, the folders of others are removed; these sessions
// no longer prevent that a folder is moved to the trash.
func TestMountsOfWhoIsDeactivated(t *testing.T) {
	l := newLoft(t, "READ_WRITE")
	n := l.machine(t)
	id := l.start(t, l.friend, managertest.Vars{"vfolder": "data"})
	l.WaitFor(t, id, lifecycle.Running)
	n.Stop()
	l.Manager.As(t, l.A.Admin).Must(t, `mutation($id: ID!) { updateUser(input: {id: $id, status: INACTIVE}) { user { id } } }`, managertest.Vars{"id": l.A.Lead.ID}, nil)
	managertest.Eventually(t, "the mount is revoked", func() bool { return l.mount(t, id).RevokedAt != nil })
	if errs := l.Member.Ask(t, trashFolder, managertest.Vars{"id": l.folder}, nil); errs.Code() != "FAILED_PRECONDITION" {
		t.Errorf("move a folder to the trash that a machine may still have mounted: %s", errs)
	}
	l.Join(t, n, l.Manager)
	l.has(t, n, id, map[string]string{})
	l.historyHas(t, id, "folder data cannot be used by the session's owner, who can no longer log in: /home/work/data is empty")
	l.Member.Must(t, trashFolder, managertest.Vars{"id": l.folder}, nil)
}
