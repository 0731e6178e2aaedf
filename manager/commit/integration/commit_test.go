package integration

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/scanresult"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/cosign/cosigntest"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/managertest"
)

// site is a cluster with a registry for images of sessions.
type site struct {
	*clustertest.Cluster
	host string
	key  pushtoken.Key
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOf(t, 1)
}

// newSiteOf is newSite with a number of machines.
func newSiteOf(t *testing.T, nodes int) *site {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "registry")
	s := &site{}
	var reg *registry.Registry
	s.Cluster = clustertest.NewWith(t, nodes, func(w *managertest.World) *managertest.Manager {
		reg, s.host = registrytest.Serve(t, dir)
		key, err := pushtoken.KeyIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		s.key = key
		reg.AllowPush(key)
		w.Client.Registry.Create().SetName("own").SetHost(s.host).SetPlainHTTP(true).ExecX(w.System(t))
		w.Configure = func(cfg *manager.Config) { cfg.Images = image.Own{Host: s.host, Key: key} }
		return w.Start(t)
	})
	return s
}

// commit asks for an image of a session and returns the answer of the API.
func commit(t *testing.T, as *managertest.Client, session uuid.UUID, more managertest.Vars) (task uuid.UUID, reference string, errs managertest.Errors) {
	t.Helper()
	in := managertest.Vars{"session": session, "name": "env"}
	for k, v := range more {
		in[k] = v
	}
	var got struct {
		CommitSession struct {
			Reference string
			Task      struct{ ID uuid.UUID }
		}
	}
	errs = as.Ask(t, `mutation($in: CommitSessionInput!) { commitSession(input: $in) { reference task { id } } }`, managertest.Vars{"in": in}, &got)
	return got.CommitSession.Task.ID, got.CommitSession.Reference, errs
}

// ended waits for the end of a task and returns its status and its message.
func (s *site) ended(t *testing.T, task uuid.UUID) (status, message string) {
	t.Helper()
	managertest.Eventually(t, "the task has ended", func() bool {
		one := s.Client.Task.GetX(s.System(t), task)
		status, message = string(one.Status), one.Message
		return one.EndedAt != nil
	})
	return status, message
}

func (s *site) saved(t *testing.T, session uuid.UUID, more managertest.Vars) (reference string) {
	t.Helper()
	task, reference, errs := commit(t, s.Member, session, more)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if status, message := s.ended(t, task); status != "done" {
		t.Fatalf("the task is %s: %s", status, message)
	}
	return reference
}

func (s *site) running(t *testing.T, more managertest.Vars) uuid.UUID {
	t.Helper()
	id := s.Create(t, clustertest.SessionInput(more, "sleep", "600"))
	s.WaitFor(t, id, lifecycle.Running)
	return id
}

// A user saves a session, starts another one from the image, and shares it. Others can use it as far
// as it is shared.
func TestSaveStartAndShare(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	reference := s.saved(t, id, managertest.Vars{"tag": "1", "description": "with tools"})
	if !strings.HasPrefix(reference, s.host+"/users/") || !strings.HasSuffix(reference, "/env:1") {
		t.Errorf("the reference is %s", reference)
	}
	lead, foreign := s.Manager.As(t, s.A.Lead), s.Manager.As(t, s.B.Member)
	start := func(as *managertest.Client, name string) string {
		project := s.A.Project.ID
		if as == foreign {
			project = s.B.Project.ID
		}
		_, errs := clustertest.TryCreate(t, as, clustertest.SessionInput(managertest.Vars{"image": name, "project": project}, "sleep", "600"))
		if len(errs) == 0 {
			return ""
		}
		return errs.Code()
	}
	again := s.running(t, managertest.Vars{"image": "env:1"})
	for _, as := range []*managertest.Client{lead, foreign} {
		if code := start(as, reference); code != problem.CodeNotFound {
			t.Errorf("another user starts a private image: %q", code)
		}
		if code := start(as, "env:1"); code != problem.CodeNotFound {
			t.Errorf("another user starts a private image by its short name: %q", code)
		}
	}
	img := s.Client.Image.GetX(s.System(t), s.Client.Session.GetX(s.System(t), again).ImageID)
	if img.Reference != reference || img.OwnerID == nil || *img.OwnerID != s.A.Member.ID || img.Description != "with tools" {
		t.Errorf("the image is %v", img)
	}
	const update = `mutation($in: UpdateImageInput!) { updateImage(input: $in) { image { visibility } } }`
	share := managertest.Vars{"in": managertest.Vars{"id": img.ID, "visibility": "PROJECT", "project": s.A.Project.ID}}
	if errs := foreign.Ask(t, update, share, nil); errs.Code() != problem.CodeNotFound {
		t.Errorf("another user shares the image: %s", errs)
	}
	s.Member.Must(t, update, share, nil)
	if code := start(lead, reference); code != "" {
		t.Errorf("a member of the project cannot start the image: %s", code)
	}
	if code := start(foreign, reference); code != problem.CodeNotFound {
		t.Errorf("a user of another domain starts an image of the project: %q", code)
	}
	public := managertest.Vars{"in": managertest.Vars{"id": img.ID, "visibility": "PUBLIC"}}
	if errs := s.Member.Ask(t, update, public, nil); errs.Code() != problem.CodePermissionDenied {
		t.Errorf("its owner makes an image public: %s", errs)
	}
	const remove = `mutation($id: ID!) { deleteImage(input: {id: $id}) { id } }`
	if errs := s.Member.Ask(t, remove, managertest.Vars{"id": img.ID}, nil); errs.Code() != problem.CodeFailedPrecondition {
		t.Errorf("delete an image that sessions use: %s", errs)
	}
	for _, one := range s.Client.Session.Query().AllX(s.System(t)) {
		s.Terminate(t, one.ID, true)
	}
	s.Manager.As(t, s.Superadmin).Must(t, update, public, nil)
	if code := start(foreign, reference); code != "" {
		t.Errorf("an image that an administrator made public: %s", code)
	}
}

// A scan of the registry, as an administrator runs it, publishes nothing of users.
func TestScanPublishesNoImagesOfUsers(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	reference := s.saved(t, id, nil)
	img := s.Client.Image.Query().AllX(s.System(t))
	root := s.Manager.As(t, s.Superadmin)
	var own uuid.UUID
	for _, i := range img {
		if i.Reference == reference {
			own = *i.RegistryID
			s.Client.Image.DeleteOne(i).ExecX(s.System(t))
		}
	}
	var scan struct {
		ScanRegistry struct{ Task struct{ ID uuid.UUID } }
	}
	root.Must(t, `mutation($id: ID!) { scanRegistry(input: {id: $id}) { task { id } } }`, managertest.Vars{"id": own}, &scan)
	if status, message := s.ended(t, scan.ScanRegistry.Task.ID); status != "done" {
		t.Fatalf("the scan is %s: %s", status, message)
	}
	orphan := s.Client.ScanResult.Query().OnlyX(s.System(t))
	if orphan.Outcome != scanresult.OutcomeSkipped || !strings.Contains(orphan.Message, "belongs to a user") {
		t.Errorf("the result of the image without a row: %s %q", orphan.Outcome, orphan.Message)
	}
	if n := s.Client.Image.Query().CountX(s.System(t)); n != len(img)-1 {
		t.Errorf("the scan has registered an image of a user: %d images, %d before", n, len(img)-1)
	}
}

// The limits of a policy are refused with their amount, before the work and after it.
func TestLimitsOfImages(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	policy := s.CreatePolicy(t, s.A.Member, "images", managertest.Vars{"maxCustomizedImages": 1, "maxImageBytes": 1_000_000})
	s.saved(t, id, nil)
	s.saved(t, id, nil) // replaces the first
	if _, _, errs := commit(t, s.Member, id, managertest.Vars{"name": "second"}); errs.Code() != problem.CodeResourceExhausted || !strings.Contains(errs.String(), "own images") {
		t.Errorf("a second image: %s", errs)
	}
	s.UpdatePolicy(t, policy, managertest.Vars{"maxCustomizedImages": 5, "maxImageBytes": 0})
	if _, _, errs := commit(t, s.Member, id, managertest.Vars{"name": "second"}); errs.Code() != problem.CodeResourceExhausted || !strings.Contains(errs.String(), "image bytes") {
		t.Errorf("an image without room: %s", errs)
	}
	var got struct {
		ImageUsage struct {
			Count, MaxCount int
			Bytes, MaxBytes int64
		}
	}
	s.Member.Must(t, `{ imageUsage { count bytes maxCount maxBytes } }`, nil, &got)
	if got.ImageUsage.Count != 1 || got.ImageUsage.MaxCount != 5 || got.ImageUsage.MaxBytes != 0 {
		t.Errorf("the usage is %+v", got.ImageUsage)
	}
}

// A project's limit on bytes counts the images that are shared with it: a commit for the project and the
// sharing of an image are refused with the numbers, and an image that is not shared is not.
func TestLimitsOfAProject(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	root := s.Manager.As(t, s.Superadmin)
	var made struct {
		CreateResourcePolicy struct{ Policy struct{ ID uuid.UUID } }
	}
	root.Must(t, `mutation { createResourcePolicy(input: {name: "shared images", maxImageBytes: 0}) { policy { id } } }`, nil, &made)
	root.Must(t, `mutation($p: ID!, $to: ID!) { attachResourcePolicy(input: {policy: $p, project: $to}) { attachment { id } } }`,
		managertest.Vars{"p": made.CreateResourcePolicy.Policy.ID, "to": s.A.Project.ID}, nil)
	_, _, errs := commit(t, s.Member, id, managertest.Vars{"project": s.A.Project.ID})
	if errs.Code() != problem.CodeResourceExhausted || !strings.Contains(errs.String(), "project") || !strings.Contains(errs.String(), "image bytes") {
		t.Errorf("a commit for the project: %s", errs)
	}
	reference := s.saved(t, id, nil)
	saved := s.Client.Image.Query().Where(entimage.Reference(reference)).OnlyX(s.System(t))
	s.Client.Image.UpdateOne(saved).SetAddedBytes(1000).ExecX(s.System(t)) // the session of the test has changed nothing
	share := `mutation($id: ID!, $p: ID!) { updateImage(input: {id: $id, visibility: PROJECT, project: $p}) { image { id } } }`
	errs = s.Member.Ask(t, share, managertest.Vars{"id": saved.ID, "p": s.A.Project.ID}, nil)
	if errs.Code() != problem.CodeResourceExhausted || !strings.Contains(errs.String(), "1000") {
		t.Errorf("sharing an image with the project: %s", errs)
	}
	root.Must(t, `mutation($p: ID!) { updateResourcePolicy(input: {id: $p, maxImageBytes: 1000000}) { policy { id } } }`,
		managertest.Vars{"p": made.CreateResourcePolicy.Policy.ID}, nil)
	s.Member.Must(t, share, managertest.Vars{"id": saved.ID, "p": s.A.Project.ID}, nil)
}

// A registry with keys refuses sessions of its unsigned images through the API, by the name of the image.
func TestSessionsOfUnsignedImages(t *testing.T) {
	s := newSite(t)
	s.running(t, nil)
	root := s.Manager.As(t, s.Superadmin)
	i := s.Client.Image.Query().Where(entimage.OwnerIDIsNil()).FirstX(s.System(t))
	root.Must(t, `mutation($id: ID!, $keys: String!) { updateRegistry(input: {id: $id, signatureKeys: $keys}) { registry { signatureKeys } } }`,
		managertest.Vars{"id": *i.RegistryID, "keys": cosigntest.NewECDSA(t).PEM}, nil)
	_, errs := clustertest.TryCreate(t, s.Member, clustertest.SessionInput(managertest.Vars{"image": i.Reference}, "true"))
	if errs.Code() != problem.CodeFailedPrecondition || !strings.Contains(errs.String(), i.Name) || !strings.Contains(errs.String(), "no signature") {
		t.Errorf("a session of an unsigned image: %s", errs)
	}
}

func TestRefusedCommits(t *testing.T) {
	s := newSite(t)
	id := s.running(t, nil)
	other := s.Manager.As(t, s.A.Lead)
	if _, _, errs := commit(t, other, id, nil); errs.Code() != problem.CodePermissionDenied {
		t.Errorf("the project's admin saves a session that they cannot enter: %s", errs)
	}
	foreign := s.Manager.As(t, s.B.Member)
	if _, _, errs := commit(t, foreign, id, nil); errs.Code() != problem.CodeNotFound {
		t.Errorf("a user of another domain saves the session: %s", errs)
	}
	for field, bad := range map[string]managertest.Vars{
		"name":        {"name": "../../python"},
		"tag":         {"tag": "a b"},
		"description": {"description": strings.Repeat("x", 1001)},
		"project":     {"project": s.B.Project.ID},
	} {
		if _, _, errs := commit(t, s.Member, id, bad); len(errs) == 0 || !strings.Contains(fmt.Sprint(errs), field) {
			t.Errorf("a bad %s: %s", field, errs)
		}
	}
	s.Terminate(t, id, true)
	s.WaitForEnd(t, id)
	if _, _, errs := commit(t, s.Member, id, nil); errs.Code() != problem.CodeFailedPrecondition {
		t.Errorf("a session that has ended: %s", errs)
	}
}

// A cancelled commit, and one that its agent refuses, leave no image.
func TestCommitsThatDoNotComplete(t *testing.T) {
	s := newSite(t)
	slow := s.running(t, clustertest.Environment("FAKE_COMMIT_DELAY", "1h"))
	task, _, errs := commit(t, s.Member, slow, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	managertest.Eventually(t, "the task runs", func() bool { return s.Client.Task.GetX(s.System(t), task).StartedAt != nil })
	if _, _, errs := commit(t, s.Member, slow, managertest.Vars{"name": "second"}); errs.Code() != problem.CodeFailedPrecondition {
		t.Errorf("a second commit at the same time: %s", errs)
	}
	s.Member.Must(t, `mutation($id: ID!) { cancelTask(input: {id: $id}) { task { status } } }`, managertest.Vars{"id": task}, nil)
	if status, _ := s.ended(t, task); status != "cancelled" {
		t.Errorf("the cancelled task is %s", status)
	}
	bad := s.running(t, clustertest.Environment("FAKE_FAIL_COMMIT", "directory /x was moved"))
	task, _, errs = commit(t, s.Member, bad, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if status, message := s.ended(t, task); status != "failed" || !strings.Contains(message, "directory /x was moved") {
		t.Errorf("the task is %s: %s", status, message)
	}
	if n := s.Client.Image.Query().CountX(s.System(t)); n != 2 {
		t.Errorf("%d images, want the 2 of the cluster", n)
	}
}

// A push token permits one repository, and layers of one other.
func TestPushTokenIsForOneRepository(t *testing.T) {
	s := newSite(t)
	token, err := s.key.Sign(pushtoken.Grant{Repository: "users/a/env", From: "python", Expires: s.Client.Registry.Query().FirstX(s.System(t)).CreatedAt.AddDate(1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/v2/users/a/env/blobs/uploads/", http.StatusAccepted},
		{http.MethodPost, "/v2/users/b/env/blobs/uploads/", http.StatusForbidden},
		{http.MethodPost, "/v2/users/a/env2/blobs/uploads/", http.StatusForbidden},
		{http.MethodPut, "/v2/python/manifests/latest", http.StatusForbidden},
		{http.MethodGet, "/v2/_catalog", http.StatusForbidden},
		{http.MethodGet, "/v2/users/a/env/tags/list", http.StatusForbidden},
		{http.MethodDelete, "/v2/users/a/env/manifests/latest", http.StatusForbidden},
		{http.MethodPost, "/v2/users/a/env/blobs/uploads/?mount=sha256:1&from=users/b/env", http.StatusForbidden},
		{http.MethodPost, "/v2/users/a/env/../b/blobs/uploads/", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.host+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(pushtoken.User, token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, resp.StatusCode, c.want)
		}
	}
}
