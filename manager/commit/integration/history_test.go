package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/imageversion"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A limit that is used up to its last byte refuses a commit before anything starts. 0 bytes left is not "no limit".
func TestALimitWithoutAByteLeft(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	reference := s.saved(t, id, nil)
	s.Client.Image.Update().Where(entimage.Reference(reference)).SetAddedBytes(1000).ExecX(s.System(t))
	policy := s.CreatePolicy(t, s.A.Member, "images", managertest.Vars{"maxImageBytes": 1000})
	before := s.Client.Task.Query().CountX(s.System(t))
	_, _, errs := commit(t, s.Member, id, managertest.Vars{"name": "second"})
	if errs.Code() != problem.CodeResourceExhausted || !strings.Contains(errs.String(), "image bytes") || !strings.Contains(errs.String(), "1000") {
		t.Errorf("a commit with 0 bytes left: %s", errs)
	}
	if n := s.Client.Task.Query().CountX(s.System(t)); n != before {
		t.Errorf("%d tasks were started", n-before)
	}
	s.UpdatePolicy(t, policy, managertest.Vars{"maxImageBytes": 5000})
	s.saved(t, id, managertest.Vars{"name": "second"})
}

type history struct {
	Image struct {
		Reference string
		Digest    string
		Versions  []struct {
			Digest, Base string
			SessionID    uuid.UUID
			AddedBytes   int64
			Creator      *struct{ Username string }
		}
	}
}

func (s *site) history(t *testing.T, name string) (h history) {
	t.Helper()
	s.Member.Must(t, `query($n: String!) { image(name: $n) { reference digest versions { digest base sessionID addedBytes creator { username } } } }`,
		managertest.Vars{"n": name}, &h)
	return h
}

// The history of an image has its commits: the session, the image of that session, and who saved it. It cannot go back
// to one, because the registry does not keep them.
func TestHistoryOfCommits(t *testing.T) {
	s := newSite(t)
	first := s.running(t, nil)
	reference := s.saved(t, first, nil)
	own := s.Client.Image.Query().Where(entimage.Reference(reference)).OnlyX(s.System(t))
	// The session changes nothing, so that each commit has the same content: what the first had is another now, from
	// before histories were kept.
	const former = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	second := s.running(t, managertest.Vars{"image": reference})
	s.Client.ImageVersion.Delete().Where(imageversion.ImageID(own.ID)).ExecX(s.System(t))
	s.Client.Image.UpdateOne(own).SetDigest(former).SetAddedBytes(7).ExecX(s.System(t))
	s.saved(t, second, nil)
	s.saved(t, second, nil) // the same content again is one version
	h := s.history(t, reference)
	if len(h.Image.Versions) != 2 {
		t.Fatalf("the history is %+v", h.Image.Versions)
	}
	newest, oldest := h.Image.Versions[0], h.Image.Versions[1]
	if newest.Digest != h.Image.Digest || newest.SessionID != second || newest.Base != reference || newest.Creator == nil || newest.Creator.Username != s.A.Member.Username {
		t.Errorf("the newest commit is %+v", newest)
	}
	if oldest.Digest != former || oldest.SessionID != first || oldest.Base != clustertest.ImageReference || oldest.AddedBytes != 7 {
		t.Errorf("the oldest commit is %+v", oldest)
	}
	errs := s.Member.Ask(t, `mutation($id: ID!) { rollbackImage(input: {id: $id}) { image { id } } }`, managertest.Vars{"id": own.ID}, nil)
	if len(errs) == 0 {
		t.Error("an image of a session goes back to a former commit")
	}
	errs = s.Manager.As(t, s.Superadmin).Ask(t, `mutation($id: ID!, $d: String) { rollbackImage(input: {id: $id, digest: $d}) { image { id } } }`,
		managertest.Vars{"id": own.ID, "d": former}, nil)
	if errs.Code() != problem.CodeFailedPrecondition || !strings.Contains(errs.String(), "save the session again") {
		t.Errorf("a superadmin goes back: %s", errs)
	}
}

const rename = `mutation($in: RenameImageInput!) { renameImage(input: $in) { image { reference name } } }`

// has reports whether the registry has a manifest.
func (s *site) has(t *testing.T, path string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+s.host+"/v2/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// A user renames their image while a session of it runs. New sessions start from the new name, the old name is free,
// and the old content stays for pulls that are in progress.
func TestRename(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	old := s.saved(t, id, managertest.Vars{"tag": "1"})
	other := s.saved(t, id, managertest.Vars{"name": "taken"})
	own := s.Client.Image.Query().Where(entimage.Reference(old)).OnlyX(s.System(t))
	running := s.running(t, managertest.Vars{"image": old})
	ask := func(as *managertest.Client, more managertest.Vars) (reference string, errs managertest.Errors) {
		in := managertest.Vars{"id": own.ID}
		for k, v := range more {
			in[k] = v
		}
		var got struct {
			RenameImage struct{ Image struct{ Reference string } }
		}
		errs = as.Ask(t, rename, managertest.Vars{"in": in}, &got)
		return got.RenameImage.Image.Reference, errs
	}
	for what, c := range map[string]struct {
		as   *managertest.Client
		in   managertest.Vars
		code string
		says string
	}{
		"by another user":   {s.Manager.As(t, s.B.Member), managertest.Vars{"name": "mine"}, problem.CodeNotFound, ""},
		"to a taken name":   {s.Member, managertest.Vars{"name": "taken", "tag": "latest"}, problem.CodeAlreadyExists, "taken:latest"},
		"to the same name":  {s.Member, managertest.Vars{"tag": "1"}, problem.CodeFailedPrecondition, "env:1"},
		"to a path":         {s.Member, managertest.Vars{"name": "../../python"}, problem.CodeInvalidArgument, "name"},
		"to an invalid tag": {s.Member, managertest.Vars{"tag": "a b"}, problem.CodeInvalidArgument, "tag"},
	} {
		if _, errs := ask(c.as, c.in); errs.Code() != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("a rename %s: %s", what, errs)
		}
	}
	reference, errs := ask(s.Member, managertest.Vars{"name": "better", "tag": "2"})
	if want := strings.Replace(old, "env:1", "better:2", 1); len(errs) > 0 || reference != want {
		t.Fatalf("renamed to %s, want %s: %s", reference, want, errs)
	}
	path := func(reference, version string) string {
		name := strings.TrimPrefix(reference, s.host+"/")
		return name[:strings.LastIndexByte(name, ':')] + "/manifests/" + version
	}
	if !s.has(t, path(reference, "2")) || !s.has(t, path(reference, own.Digest)) {
		t.Error("the registry lacks the new name")
	}
	if s.has(t, path(old, "1")) || !s.has(t, path(old, own.Digest)) {
		t.Error("the registry has the old tag, or lacks the content for pulls that are in progress")
	}
	if now := s.Client.Session.GetX(s.System(t), running); now.Status != lifecycle.Running || now.ImageID != own.ID {
		t.Errorf("the session of the image is %s", now.Status)
	}
	if _, errs := clustertest.TryCreate(t, s.Member, clustertest.SessionInput(managertest.Vars{"image": "better:2"}, "true")); len(errs) > 0 {
		t.Errorf("a session of the new name: %s", errs)
	}
	if _, errs := clustertest.TryCreate(t, s.Member, clustertest.SessionInput(managertest.Vars{"image": old}, "true")); errs.Code() != problem.CodeNotFound {
		t.Errorf("a session of the old name: %s", errs)
	}
	if again := s.saved(t, running, managertest.Vars{"tag": "1"}); again != old {
		t.Errorf("a commit to the old name is %s", again)
	}
	// Only the tag: the content has its repository already.
	if reference, errs = ask(s.Member, managertest.Vars{"tag": "3"}); len(errs) > 0 || !strings.HasSuffix(reference, "/better:3") || !s.has(t, path(reference, "3")) || s.has(t, path(reference, "2")) {
		t.Errorf("renamed to %s: %s", reference, errs)
	}
	if h := s.history(t, "better:3"); h.Image.Reference != reference {
		t.Errorf("better:3 is %q", h.Image.Reference)
	}
	var none struct{ Image *struct{ ID uuid.UUID } }
	if s.Manager.As(t, s.A.Lead).Must(t, `{ image(name: "better:3") { id } }`, nil, &none); none.Image != nil {
		t.Error("another user finds the image by its short name")
	}
	if n := s.Client.Image.Query().Where(entimage.ReferenceIn(old, other, reference)).CountX(s.System(t)); n != 3 {
		t.Errorf("%d images", n)
	}
	s.audited(t, "renameImage")
}

// audited checks that the audit log has a change.
func (s *site) audited(t *testing.T, action string) {
	t.Helper()
	var got struct {
		AuditEntries struct {
			Edges []struct {
				Node struct{ Action, Result string }
			}
		}
	}
	s.Manager.As(t, s.Superadmin).Must(t, `{ auditEntries(first: 100) { edges { node { action result } } } }`, nil, &got)
	for _, e := range got.AuditEntries.Edges {
		if strings.Contains(e.Node.Action, action) {
			return
		}
	}
	t.Errorf("the audit log has no %s", action)
}

// The leader is killed while an agent copies the files of a session: the other manager saves the session, and one image
// with one commit is the result.
func TestManagerKilledDuringACommit(t *testing.T) {
	s := newSiteOf(t, 0)
	second := s.Start(t)
	n := &clustertest.Node{Name: "a", Dir: t.TempDir(), Network: clustertest.NewFakeNetwork(0), Host: fake.NewHost(clustertest.PulledImage())}
	s.Nodes = append(s.Nodes, n)
	s.Join(t, n, s.Manager, second)
	managertest.Eventually(t, "the second manager reaches the agent", func() bool { return second.Reaches("a") })
	id := s.running(t, clustertest.Environment("FAKE_COMMIT_DELAY", "1500ms"))
	task, reference, errs := commit(t, s.Member, id, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s.waitRunning(t, task)
	s.Manager.Kill()
	s.Manager, s.Member = second, second.As(t, s.A.Member)
	if has := s.Client.Image.Query().Where(entimage.Reference(reference)).CountX(s.System(t)); has != 0 {
		t.Errorf("half a commit has %d images", has)
	}
	if status, message := s.ended(t, task); status != "done" {
		t.Fatalf("the task is %s: %s", status, message)
	}
	h := s.history(t, reference)
	if len(h.Image.Versions) != 1 || h.Image.Versions[0].Digest != h.Image.Digest || h.Image.Versions[0].SessionID != id {
		t.Errorf("the image is %+v", h.Image)
	}
	name := strings.TrimPrefix(reference, s.host+"/")
	if !s.has(t, strings.Replace(name, ":", "/manifests/", 1)) {
		t.Error("the registry lacks the image")
	}
}

// waitRunning waits until a task runs at an agent.
func (s *site) waitRunning(t *testing.T, id uuid.UUID) {
	t.Helper()
	managertest.Eventually(t, "the task runs", func() bool {
		one, err := s.Client.Task.Query().Where(enttask.ID(id), enttask.StatusEQ(enttask.StatusRunning)).Only(s.System(t))
		return err == nil && one.Total > 0
	})
}
