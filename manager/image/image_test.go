package image_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/image"
)

// store is a real registry with the images of tests.
type store struct {
	host  string
	inner *registry.Registry
}

func newStore(t *testing.T) *store {
	t.Helper()
	r, host := registrytest.Serve(t, t.TempDir())
	return &store{host: host, inner: r}
}

// put adds an image for each architecture under one name, and returns the digests.
func (s *store) put(t *testing.T, name string, labels map[string]string, archs ...string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})
	digests := map[string]string{}
	var index v1.ImageIndex = empty.Index
	for _, arch := range archs {
		img := build(t, arch, labels)
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[arch] = d.String()
		if len(archs) == 1 {
			err = p.AppendImage(img, named)
		} else {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(archs) > 1 {
		if err := p.AppendIndex(index, named); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.inner.Import(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return digests
}

func build(t *testing.T, arch string, labels map[string]string) v1.Image {
	t.Helper()
	img, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Config.Labels = "linux", arch, labels
	if img, err = mutate.ConfigFile(img, c); err != nil {
		t.Fatal(err)
	}
	return img
}

func add(t testing.TB, ctx context.Context, s *image.Service, name, host string) *ent.Registry {
	t.Helper()
	plain := true
	out, err := s.CreateRegistry(ctx, image.CreateRegistryInput{Name: name, Host: host, PlainHTTP: &plain})
	if err != nil {
		t.Fatal(err)
	}
	return out.Registry
}

func want(t *testing.T, err error, code, field string) {
	t.Helper()
	if err == nil {
		if code != "" {
			t.Errorf("accepted, want %s", code)
		}
		return
	}
	if p, _ := problem.From(err); p.Code != code || field != "" && p.Field != field {
		t.Errorf("got %s field %q (%v), want %s field %q", p.Code, p.Field, err, code, field)
	}
}

func TestCreateRegistry(t *testing.T) {
	w := identitytest.New(t)
	s := image.New(image.Config{Client: w.Client, Keys: ring(t)})
	for name, c := range map[string]struct {
		as          *ent.User
		host        string
		code, field string
		stored      string
	}{
		"by a domain admin": {w.A.Admin, "a.example", problem.CodePermissionDenied, "", ""},
		"by a monitor":      {w.Monitor, "a.example", problem.CodePermissionDenied, "", ""},
		"with a scheme":     {w.Superadmin, "http://a.example", problem.CodeInvalidArgument, "host", ""},
		"with a path":       {w.Superadmin, "a.example/v2", problem.CodeInvalidArgument, "host", ""},
		"look-alike":        {w.Superadmin, "dоcker.io", problem.CodeInvalidArgument, "host", ""},
		"port too high":     {w.Superadmin, "a.example:70000", problem.CodeInvalidArgument, "host", ""},
		"with credentials":  {w.Superadmin, "user:secret@a.example", problem.CodeInvalidArgument, "host", ""},
		"empty":             {w.Superadmin, "", problem.CodeInvalidArgument, "host", ""},
		"upper case":        {w.Superadmin, "Registry.Example:5000", "", "", "registry.example:5000"},
		"docker's machine":  {w.Superadmin, "index.docker.io", "", "", "docker.io"},
		"an address":        {w.Superadmin, "[::1]:5000", "", "", "[::1]:5000"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := s.CreateRegistry(w.As(t, c.as), image.CreateRegistryInput{Name: name, Host: c.host})
			if name == "docker's machine" {
				want(t, err, problem.CodeInvalidArgument, "name")
				out, err = s.CreateRegistry(w.As(t, c.as), image.CreateRegistryInput{Name: "docker", Host: c.host})
			}
			want(t, err, c.code, c.field)
			if err == nil && out.Registry.Host != c.stored {
				t.Errorf("stored %q, want %q", out.Registry.Host, c.stored)
			}
		})
	}
	_, err := s.CreateRegistry(w.As(t, w.Superadmin), image.CreateRegistryInput{Name: "again", Host: "docker.io"})
	want(t, err, problem.CodeAlreadyExists, "host")
}

func TestRegister(t *testing.T) {
	w := identitytest.New(t)
	s, root := image.New(image.Config{Client: w.Client, Keys: ring(t)}), w.As(t, w.Superadmin)
	st := newStore(t)
	digests := st.put(t, "lab/torch:2", nil, "arm64", "amd64")
	_, err := s.RegisterImage(root, image.RegisterImageInput{Reference: "lab/torch:2"})
	want(t, err, problem.CodeNotFound, "reference")
	add(t, root, s, "local", st.host)
	for name, c := range map[string]struct {
		ref         string
		code, field string
	}{
		"full":                {st.host + "/lab/torch:2", "", ""},
		"without the host":    {"lab/torch:2", "", ""},
		"with its digest":     {"lab/torch:2@" + digests["amd64"], "", ""},
		"with another digest": {"lab/torch:2@sha256:" + strings.Repeat("0", 64), problem.CodeInvalidArgument, "reference"},
		"with half a digest":  {"lab/torch:2@sha256:00", problem.CodeInvalidArgument, "reference"},
		"no such tag":         {"lab/torch:3", problem.CodeNotFound, "reference"},
		"no such registry":    {"registry.example/lab/torch:2", problem.CodeNotFound, "reference"},
		"climbing":            {st.host + "/../../etc:2", problem.CodeInvalidArgument, "reference"},
		"a scheme":            {"http://" + st.host + "/lab/torch:2", problem.CodeInvalidArgument, "reference"},
		"300 characters":      {strings.Repeat("a", 300) + ":2", problem.CodeInvalidArgument, "reference"},
		"an option":           {"--privileged", problem.CodeInvalidArgument, "reference"},
		"a look-alike":        {"lаb/torch:2", problem.CodeInvalidArgument, "reference"},
		"empty":               {"", problem.CodeInvalidArgument, "reference"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := s.RegisterImage(root, image.RegisterImageInput{Reference: c.ref})
			want(t, err, c.code, c.field)
			if err == nil && (out.Image.Reference != st.host+"/lab/torch:2" || out.Image.Architecture != "amd64") {
				t.Errorf("registered %v", out.Image)
			}
		})
	}
	if n := w.Client.Image.Query().CountX(root); n != 2 {
		t.Errorf("%d rows, want one for each architecture", n)
	}
	_, err = s.RegisterImage(w.As(t, w.A.Admin), image.RegisterImageInput{Reference: "lab/torch:2"})
	want(t, err, problem.CodePermissionDenied, "")
}

func TestResolve(t *testing.T) {
	w := identitytest.New(t)
	s, root := image.New(image.Config{Client: w.Client, Keys: ring(t)}), w.As(t, w.Superadmin)
	here, hub := add(t, root, s, "here", "here.example:5000"), add(t, root, s, "hub", "docker.io")
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	row := func(r *ent.Registry, name, arch, d string, status entimage.Status) {
		w.Client.Image.Create().SetReference(r.Host + "/" + name).SetName(name).SetArchitecture(arch).
			SetDigest(d).SetStatus(status).SetRegistryID(r.ID).ExecX(root)
	}
	row(here, "python:3.11", "arm64", digest("1"), entimage.StatusAlive)
	row(here, "python:3.11", "amd64", digest("2"), entimage.StatusAlive)
	row(here, "python:latest", "arm64", digest("3"), entimage.StatusAlive)
	row(here, "both:1", "amd64", digest("4"), entimage.StatusAlive)
	row(hub, "both:1", "amd64", digest("5"), entimage.StatusAlive)
	row(hub, "library/debian:12", "amd64", digest("6"), entimage.StatusAlive)
	row(here, "old:1", "amd64", digest("7"), entimage.StatusGone)
	row(hub, "old:1", "amd64", digest("8"), entimage.StatusAlive)
	row(here, "older:1", "amd64", digest("9"), entimage.StatusGone)
	for ref, c := range map[string]struct{ digest, code string }{
		"python:3.11":                        {digest("2"), ""},
		" python:3.11 ":                      {digest("2"), ""},
		"python":                             {digest("3"), ""},
		"here.example:5000/python:3.11":      {digest("2"), ""},
		"HERE.example:5000/python:3.11":      {digest("2"), ""},
		"python:3.11@" + digest("1"):         {digest("1"), ""},
		"python:3.11@" + digest("f"):         {"", problem.CodeInvalidArgument},
		"both:1":                             {"", problem.CodeInvalidArgument},
		"here.example:5000/both:1":           {digest("4"), ""},
		"docker.io/debian:12":                {digest("6"), ""},
		"index.docker.io/library/debian:12":  {digest("6"), ""},
		"old:1":                              {digest("8"), ""},
		"older:1":                            {"", problem.CodeNotFound},
		"python:3.12":                        {"", problem.CodeNotFound},
		"nowhere.example/python:3.11":        {"", problem.CodeNotFound},
		"Python:3.11":                        {"", problem.CodeInvalidArgument},
		"python:3.11; rm -rf /":              {"", problem.CodeInvalidArgument},
		"python:" + strings.Repeat("1", 129): {"", problem.CodeInvalidArgument},
	} {
		t.Run(ref, func(t *testing.T) {
			got, err := s.Resolve(w.As(t, w.A.Member), ref)
			want(t, err, c.code, "")
			if err != nil {
				want(t, err, c.code, "image")
				return
			}
			if got.Digest != c.digest {
				t.Errorf("got %v, want digest %s", got, c.digest)
			}
		})
	}
	_, err := s.Resolve(w.As(t, w.A.Member), "python:3.12")
	if p, _ := problem.From(err); !strings.Contains(p.Message, "python:3.11") {
		t.Errorf("no hint in %q", p.Message)
	}
}

func TestForget(t *testing.T) {
	w := identitytest.New(t)
	s, root := image.New(image.Config{Client: w.Client, Keys: ring(t)}), w.As(t, w.Superadmin)
	r := add(t, root, s, "here", "here.example")
	i := w.Client.Image.Create().SetReference("here.example/a:1").SetName("a:1").SetArchitecture("amd64").
		SetDigest("sha256:0").SetRegistryID(r.ID).SaveX(root)
	_, err := s.DeleteImage(w.As(t, w.A.Admin), image.DeleteImageInput{ID: i.ID})
	want(t, err, problem.CodePermissionDenied, "")
	out, err := s.DeleteImage(root, image.DeleteImageInput{ID: i.ID})
	if err != nil || out.ID != i.ID || w.Client.Image.Query().CountX(root) != 0 {
		t.Errorf("forgot %v, %v", out, err)
	}
	_, err = s.DeleteImage(root, image.DeleteImageInput{ID: i.ID})
	want(t, err, problem.CodeNotFound, "id")

	used := w.Client.Image.Create().SetReference("here.example/b:1").SetName("b:1").SetArchitecture("amd64").
		SetDigest("sha256:0").SetRegistryID(r.ID).SaveX(root)
	w.Client.Session.Create().SetName("s").SetType(session.TypeBatch).SetSlots(resource.Slots{"cpu": 1000}).
		SetDomainID(w.A.ID).SetProjectID(w.A.Project.ID).SetOwnerID(w.A.Member.ID).SetImageID(used.ID).
		SetResourceGroup(w.Client.ResourceGroup.Create().SetName("g").SaveX(root)).ExecX(root)
	if _, err := s.DeleteImage(root, image.DeleteImageInput{ID: used.ID}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Resolve(root, "b:1")
	want(t, err, problem.CodeNotFound, "image")
	if n := w.Client.Session.Query().Where(session.HasImageWith(entimage.ID(used.ID))).CountX(root); n != 1 {
		t.Error("the session lost its image")
	}
}

func ring(t testing.TB) *seal.Ring {
	t.Helper()
	r, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}
