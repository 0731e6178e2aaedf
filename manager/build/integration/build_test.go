package integration

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagebuild"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/managertest"
)

// site is a cluster with a registry for images of users.
type site struct {
	*clustertest.Cluster
	host string
	key  pushtoken.Key
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "registry")
	s := &site{}
	s.Cluster = clustertest.NewWith(t, 1, func(w *managertest.World) *managertest.Manager {
		var reg *registry.Registry
		reg, s.host = registrytest.Serve(t, dir)
		key, err := pushtoken.KeyIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		reg.AllowPush(key)
		s.key = key
		w.Client.Registry.Create().SetName("own").SetHost(s.host).SetPlainHTTP(true).ExecX(w.System(t))
		w.Configure = func(cfg *manager.Config) { cfg.Images = image.Own{Host: s.host, Key: key} }
		return w.Start(t)
	})
	return s
}

const mutation = `mutation($in: BuildImageInput!) { buildImage(input: $in) { build { id session { id } } } }`

// build asks for a build of a Dockerfile and returns the answer of the API.
func build(t *testing.T, as *managertest.Client, dockerfile string, more managertest.Vars) (id uuid.UUID, errs managertest.Errors) {
	t.Helper()
	in := managertest.Vars{"name": "env", "kind": "DOCKERFILE", "text": dockerfile, "slots": managertest.Vars{"cpu": "0.1", "mem": "64m"}}
	for k, v := range more {
		in[k] = v
	}
	var got struct {
		BuildImage struct{ Build struct{ ID uuid.UUID } }
	}
	errs = as.Ask(t, mutation, managertest.Vars{"in": in}, &got)
	return got.BuildImage.Build.ID, errs
}

// ended waits for the end of a build and of its session.
func (s *site) ended(t *testing.T, id uuid.UUID) *ent.ImageBuild {
	t.Helper()
	var b *ent.ImageBuild
	managertest.Eventually(t, "the build has ended", func() bool {
		b = s.Client.ImageBuild.GetX(s.System(t), id)
		return b.EndedAt != nil
	})
	s.WaitForEnd(t, *b.SessionID)
	if b.InputSealed != nil {
		t.Error("the ended build still has its input")
	}
	return b
}

func (s *site) must(t *testing.T, as *managertest.Client, dockerfile string, more managertest.Vars) *ent.ImageBuild {
	t.Helper()
	id, errs := build(t, as, dockerfile, more)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	b := s.ended(t, id)
	if b.Status != imagebuild.StatusSucceeded {
		t.Fatalf("the build is %s: %s", b.Status, b.Message)
	}
	return b
}

const simple = "FROM prog:latest\nRUN true\n"

// A user builds an image and starts a session from it. The project sees it only if it is shared.
func TestBuildAndStart(t *testing.T) {
	s := newSite(t)
	b := s.must(t, s.Member, simple, managertest.Vars{"tag": "2", "description": "with tools"})
	img := s.Client.Image.GetX(s.System(t), *b.ImageID)
	if !strings.HasPrefix(img.Reference, s.host+"/users/") || !strings.HasSuffix(img.Reference, "/env:2") || img.Description != "with tools" ||
		*img.OwnerID != s.A.Member.ID || img.Base != clustertest.ImageReference || img.Digest != b.ImageDigest || b.Steps != 1 || b.LayerBytes == 0 {
		t.Errorf("the image is %v\nthe build is %v", img, b)
	}
	id := s.Create(t, clustertest.SessionInput(managertest.Vars{"image": "env:2"}, "sleep", "600"))
	s.WaitFor(t, id, lifecycle.Running)
	lead := s.Manager.As(t, s.A.Lead)
	if _, errs := clustertest.TryCreate(t, lead, clustertest.SessionInput(managertest.Vars{"image": img.Reference}, "sleep", "600")); errs.Code() != problem.CodeNotFound {
		t.Errorf("another user starts a private image: %s", errs)
	}
	shared := s.must(t, s.Member, simple, managertest.Vars{"name": "shared", "shared": true})
	reference := s.Client.Image.GetX(s.System(t), *shared.ImageID).Reference
	if _, errs := clustertest.TryCreate(t, lead, clustertest.SessionInput(managertest.Vars{"image": reference}, "sleep", "600")); len(errs) > 0 {
		t.Errorf("a member of the project starts a shared image: %s", errs)
	}
}

// A failed step, a builder that dies, a cancelled build and the end of the session leave neither an image nor a
// session.
func TestBuildsThatDoNotSucceed(t *testing.T) {
	s := newSite(t)
	run := func(dockerfile string) uuid.UUID {
		t.Helper()
		id, errs := build(t, s.Member, dockerfile, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return id
	}
	running := func(id uuid.UUID) *ent.ImageBuild {
		t.Helper()
		var b *ent.ImageBuild
		managertest.Eventually(t, "the build runs", func() bool {
			b = s.Client.ImageBuild.GetX(s.System(t), id)
			return b.Status == imagebuild.StatusRunning
		})
		return b
	}
	if b := s.ended(t, run("FROM prog:latest\nRUN fail now\n")); b.Status != imagebuild.StatusFailed || b.FailedStep != "RUN fail now" || !strings.Contains(b.Message, "exit code: 1") {
		t.Errorf("a failed step: %v", b)
	}
	if b := s.ended(t, run("FROM prog:latest\nRUN crash\n")); b.Status != imagebuild.StatusFailed || b.Message == "" {
		t.Errorf("a builder that dies: %v", b)
	}
	waiting := run("FROM prog:latest\nRUN wait\n")
	running(waiting)
	const cancel = `mutation($id: ID!) { cancelImageBuild(input: {id: $id}) { build { status } } }`
	if errs := s.Manager.As(t, s.B.Member).Ask(t, cancel, managertest.Vars{"id": waiting}, nil); errs.Code() != problem.CodeNotFound {
		t.Errorf("a user of another domain cancels the build: %s", errs)
	}
	s.Member.Must(t, cancel, managertest.Vars{"id": waiting}, nil)
	if b := s.ended(t, waiting); b.Status != imagebuild.StatusCancelled {
		t.Errorf("the cancelled build is %v", b)
	}
	if errs := s.Member.Ask(t, cancel, managertest.Vars{"id": waiting}, nil); errs.Code() != problem.CodeFailedPrecondition {
		t.Errorf("the build is cancelled twice: %s", errs)
	}
	other := running(run("FROM prog:latest\nRUN wait\n"))
	s.Terminate(t, *other.SessionID, true)
	if b := s.ended(t, other.ID); b.Status != imagebuild.StatusFailed || !strings.Contains(b.Message, "ended") {
		t.Errorf("the build whose session was ended: %v", b)
	}
	if n := s.Client.Image.Query().CountX(s.System(t)); n != 2 {
		t.Errorf("%d images, want the 2 of the cluster", n)
	}
}

// A build uses only images that its user can use, and is refused before anything starts.
func TestRefusedBuilds(t *testing.T) {
	s := newSite(t)
	private := s.must(t, s.Manager.As(t, s.A.Lead), simple, managertest.Vars{"name": "secret"})
	reference := s.Client.Image.GetX(s.System(t), *private.ImageID).Reference
	sessions := s.Client.Session.Query().CountX(s.System(t))
	big := base64.StdEncoding.EncodeToString(make([]byte, 700<<10))
	for name, c := range map[string]struct {
		text string
		more managertest.Vars
		want string
	}{
		"an unknown image":            {"FROM alpine\n", nil, "alpine"},
		"another user's image":        {"FROM " + reference + "\n", nil, "secret"},
		"another user's files":        {"FROM prog:latest\nCOPY --from=" + reference + " /Dockerfile /x\n", nil, "secret"},
		"another user's mount":        {"FROM prog:latest\nRUN --mount=type=bind,from=" + reference + ",target=/x true\n", nil, "secret"},
		"an argument with an image":   {"ARG B=prog:latest\nFROM $B\n", managertest.Vars{"args": managertest.Vars{"B": reference}}, "secret"},
		"no image":                    {"FROM scratch\nCOPY a /a\n", nil, "names no image"},
		"a malformed Dockerfile":      {"FROM prog:latest\nNOTHING\n", nil, "NOTHING"},
		"a malformed recipe":          {"base: prog:latest\nevil: x\n", managertest.Vars{"kind": "RECIPE"}, "evil"},
		"a list without an image":     {"numpy\n", managertest.Vars{"kind": "REQUIREMENTS"}, "base"},
		"a bad name":                  {simple, managertest.Vars{"name": "../x"}, "name"},
		"files that are no archive":   {simple, managertest.Vars{"context": base64.StdEncoding.EncodeToString([]byte("text"))}, "context"},
		"files above the limit":       {simple, managertest.Vars{"context": big}, "context"},
		"an argument of the builder":  {simple, managertest.Vars{"args": managertest.Vars{"BUILDKIT_SYNTAX": "evil/frontend"}}, "BUILDKIT_SYNTAX"},
		"a project of another domain": {simple, managertest.Vars{"project": s.B.Project.ID}, "project"},
		"more memory than a machine":  {simple, managertest.Vars{"slots": managertest.Vars{"cpu": "0.1", "mem": "4096g"}}, "mem"},
	} {
		if _, errs := build(t, s.Member, c.text, c.more); len(errs) == 0 || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: %s", name, errs)
		}
	}
	if n := s.Client.Session.Query().CountX(s.System(t)); n != sessions {
		t.Errorf("refused builds have left %d sessions", n-sessions)
	}
}

// The limits of a policy on images apply to builds.
func TestLimitsOfBuilds(t *testing.T) {
	s := newSite(t)
	policy := s.CreatePolicy(t, s.A.Member, "images", managertest.Vars{"maxCustomizedImages": 1})
	s.must(t, s.Member, simple, nil)
	if _, errs := build(t, s.Member, simple, managertest.Vars{"name": "second"}); errs.Code() != problem.CodeResourceExhausted || !strings.Contains(errs.String(), "own images") {
		t.Errorf("a second image: %s", errs)
	}
	s.UpdatePolicy(t, policy, managertest.Vars{"maxCustomizedImages": 5, "maxImageBytes": 10})
	id, errs := build(t, s.Member, simple, managertest.Vars{"name": "env"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if b := s.ended(t, id); b.Status != imagebuild.StatusFailed || !strings.Contains(b.Message, "limit") {
		t.Errorf("an image above the limit of bytes: %v", b)
	}
	managertest.Eventually(t, "refused builds have no session", func() bool {
		return s.Client.Session.Query().Where(entsession.TerminatedAtIsNil()).CountX(s.System(t)) == 0
	})
}

// Files above the size of a request are sent in parts. Only their user can use them, and limits of a policy apply.
func TestFilesInParts(t *testing.T) {
	s := newSite(t)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "data", Mode: 0o644, Size: 1 << 20, Typeflag: tar.TypeReg}), discard(w.Write(make([]byte, 1<<20))), w.Close()); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for part := range slices.Chunk(archive.Bytes(), 400<<10) {
		for range 2 { // a repetition changes nothing
			status, body := s.Member.Post(t, "/images/files", "application/octet-stream", part)
			var got struct{ Digest string }
			if err := json.Unmarshal(body, &got); status != http.StatusCreated || err != nil {
				t.Fatalf("%d %s", status, body)
			}
			if !slices.Contains(parts, got.Digest) {
				parts = append(parts, got.Digest)
			}
		}
	}
	s.must(t, s.Member, simple, managertest.Vars{"files": parts})
	lead := s.Manager.As(t, s.A.Lead)
	for name, c := range map[string]struct {
		as    *managertest.Client
		files []string
		want  string
	}{
		"another user's part":    {lead, parts, "not stored"},
		"a part that is missing": {s.Member, []string{"sha256:" + strings.Repeat("0", 64)}, "not stored"},
		"no digest":              {s.Member, []string{"../../etc/passwd"}, "not a digest"},
		"too many parts":         {s.Member, make([]string, image.MaxParts+1), "more than"},
	} {
		if _, errs := build(t, c.as, simple, managertest.Vars{"files": c.files}); errs.Code() != problem.CodeInvalidArgument || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: %s", name, errs)
		}
	}
	for name, c := range map[string]struct {
		as     *managertest.Client
		body   []byte
		status int
	}{
		"a part above the limit": {s.Member, make([]byte, 8<<20+1), http.StatusRequestEntityTooLarge},
		"an empty part":          {s.Member, nil, http.StatusBadRequest},
		"without a login":        {s.Manager.Anonymous(), []byte("x"), http.StatusUnauthorized},
	} {
		if status, body := c.as.Post(t, "/images/files", "application/octet-stream", c.body); status != c.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	s.CreatePolicy(t, s.A.Member, "images", managertest.Vars{"maxImageBytes": 1 << 20})
	if status, body := s.Member.Post(t, "/images/files", "application/octet-stream", []byte("one more")); status != http.StatusTooManyRequests || !strings.Contains(string(body), "files of your builds") {
		t.Errorf("a part above the limit of the policy: %d %s", status, body)
	}
	if n := s.Client.Session.Query().Where(entsession.TerminatedAtIsNil()).CountX(s.System(t)); n != 0 {
		t.Errorf("refused builds have left %d sessions", n)
	}
}

func discard(_ int, err error) error { return err }

// A build of a Git repository is pinned to a commit. Its images are those that its owner can use, and what is wrong
// with the address is refused before anything starts.
func TestBuildsOfGitRepositories(t *testing.T) {
	s := newSite(t)
	private := s.must(t, s.Manager.As(t, s.A.Lead), simple, managertest.Vars{"name": "secret"})
	reference := s.Client.Image.GetX(s.System(t), *private.ImageID).Reference
	git := func(address string, more managertest.Vars) managertest.Vars {
		in := managertest.Vars{"address": address}
		for k, v := range more {
			in[k] = v
		}
		return managertest.Vars{"kind": "GIT", "text": "", "git": in, "base": "prog:latest"}
	}
	b := s.must(t, s.Member, "", git("https://example.org/a.git", managertest.Vars{"ref": "main"}))
	if len(b.GitCommit) != 40 || b.GitAddress != "https://example.org/a.git" || b.GitRef != "main" || b.Base != clustertest.ImageReference || !strings.Contains(b.Dockerfile, "RUN true") {
		t.Errorf("the build is %v", b)
	}
	secret := git("https://example.org/private/hunter2", managertest.Vars{"secret": "token"})
	secret["secrets"] = managertest.Vars{"token": "hunter2\n"}
	s.must(t, s.Member, "", secret)
	for name, c := range map[string]struct {
		in   managertest.Vars
		want string
	}{
		"a missing repository":           {git("https://example.org/missing", nil), "not found"},
		"a repository without its token": {git("https://example.org/private/hunter2", nil), "authentication"},
		"another user's image":           {git("https://example.org/a.git", managertest.Vars{"directory": reference}), "secret"},
	} {
		id, errs := build(t, s.Member, "", c.in)
		if len(errs) > 0 {
			t.Errorf("%s: %s", name, errs)
			continue
		}
		if b := s.ended(t, id); b.Status != imagebuild.StatusFailed || !strings.Contains(b.Message, c.want) {
			t.Errorf("%s: %v", name, b)
		}
	}
	sessions := s.Client.Session.Query().CountX(s.System(t))
	mixed := git("https://example.org/a.git", nil)
	mixed["text"] = "FROM prog:latest"
	for name, in := range map[string]managertest.Vars{
		"a file":                git("file:///etc", nil),
		"SSH":                   git("ssh://git@10.0.0.1/a", nil),
		"plain HTTP":            git("http://example.org/a", nil),
		"a token in it":         git("https://token@example.org/a", nil),
		"the metadata address":  git("https://169.254.169.254/a", nil),
		"an option as ref":      git("https://example.org/a", managertest.Vars{"ref": "--upload-pack=x"}),
		"a directory outside":   git("https://example.org/a", managertest.Vars{"directory": "../x"}),
		"a file outside":        git("https://example.org/a", managertest.Vars{"file": "/etc/passwd"}),
		"a secret that is none": git("https://example.org/a", managertest.Vars{"secret": "other"}),
		"a description too":     mixed,
		"no repository":         {"kind": "GIT", "text": ""},
	} {
		if _, errs := build(t, s.Member, "", in); errs.Code() != problem.CodeInvalidArgument || !strings.Contains(errs.String(), "git") {
			t.Errorf("%s: %s", name, errs)
		}
	}
	if n := s.Client.Session.Query().CountX(s.System(t)); n != sessions {
		t.Errorf("refused builds have left %d sessions", n-sessions)
	}
}

// The manager that leads is killed in the middle of a build. Another one continues it, and a build that is cancelled
// then leaves neither an image nor a session.
func TestBuildOutlivesItsManager(t *testing.T) {
	s := newSite(t)
	second := s.Start(t)
	node := s.Nodes[0]
	managertest.Eventually(t, "the second manager reaches the agent", func() bool { return second.Reaches(node.Name) })
	images := s.Client.Image.Query().CountX(s.System(t))
	id, errs := build(t, s.Member, "FROM prog:latest\nRUN wait\n", nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	at := func(attempt int) func() bool {
		return func() bool {
			b := s.Client.ImageBuild.GetX(s.System(t), id)
			return b.Status == imagebuild.StatusRunning && b.Attempt == attempt
		}
	}
	managertest.Eventually(t, "the build runs", at(1))
	s.Manager.Kill()
	s.Manager = second
	managertest.Eventually(t, "the other manager repeats the build", at(2))
	second.As(t, s.A.Member).Must(t, `mutation($id: ID!) { cancelImageBuild(input: {id: $id}) { build { id } } }`, managertest.Vars{"id": id}, nil)
	if b := s.ended(t, id); b.Status != imagebuild.StatusCancelled {
		t.Errorf("the build is %v", b)
	}
	if n := s.Client.Image.Query().CountX(s.System(t)); n != images {
		t.Errorf("%d images, want %d", n, images)
	}
}

// The cache of a project in the registry is shown with its size, and only those who can change the project clear it.
func TestBuildCaches(t *testing.T) {
	s := newSite(t)
	b := s.must(t, s.Member, simple, nil)
	repository := image.CacheRepository(b.ProjectID)
	token, err := s.key.Sign(pushtoken.Grant{Repository: repository, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(5000, 2)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(s.host+"/"+repository+":"+b.CacheTag, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithAuth(&authn.Basic{Username: pushtoken.User, Password: token})); err != nil {
		t.Fatal(err)
	}
	type caches struct {
		BuildCaches []struct {
			Bytes   int64
			Results int
			UsedAt  *time.Time
			Project struct{ ID uuid.UUID }
		}
	}
	list := func(as *managertest.Client) (got caches) {
		as.Must(t, `query { buildCaches { bytes results usedAt project { id } } }`, nil, &got)
		return got
	}
	got := list(s.Member).BuildCaches
	if len(got) != 1 || got[0].Bytes < 10_000 || got[0].Results != 1 || got[0].UsedAt == nil || got[0].Project.ID != b.ProjectID {
		t.Errorf("the caches are %+v", got)
	}
	if got := list(s.Manager.As(t, s.B.Member)).BuildCaches; len(got) > 0 {
		t.Errorf("a user of another domain sees %+v", got)
	}
	const clear = `mutation($in: DeleteBuildCacheInput!) { deleteBuildCache(input: $in) { results bytes } }`
	in := managertest.Vars{"in": managertest.Vars{"project": b.ProjectID}}
	if errs := s.Member.Ask(t, clear, in, nil); errs.Code() != problem.CodePermissionDenied {
		t.Errorf("a member clears the cache: %s", errs)
	}
	root := s.Manager.As(t, s.Superadmin)
	root.Must(t, clear, in, nil)
	if got := list(root).BuildCaches; len(got) > 0 {
		t.Errorf("after the deletion: %+v", got)
	}
	if b := s.Client.ImageBuild.GetX(s.System(t), b.ID); b.CacheTag != "" {
		t.Errorf("the build still names its result %s", b.CacheTag)
	}
}
