package remote

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
)

// vendor is the login of one kind of registry, as the files of testdata/vendors have it.
type vendor struct {
	Host       string // as people name the registry
	Server     string // that has its API; "": Host
	Challenge  string // WWW-Authenticate of the registry; {scope} is that of the request
	Realm      string // host of the token server; "": Basic
	Path       string // of the token server
	Service    string
	Username   string
	Password   string
	Token      string // field of the token server's answer
	Expires    int64  // seconds
	Repository string
}

// TestVendors logs in at every kind of registry, reads an image, and shows the credentials to no
// other host. A wrong password is refused by name.
func TestVendors(t *testing.T) {
	files, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var v vendor
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			v.check(t)
		})
	}
}

func (v vendor) check(t *testing.T) {
	if v.Server == "" {
		v.Server = v.Host
	}
	hosts := map[string]http.Handler{v.Server: http.HandlerFunc(v.registry)}
	may := []string{v.Server}
	if v.Realm != "" {
		may = append(may, v.Realm)
		if v.Realm != v.Server {
			hosts[v.Realm] = http.HandlerFunc(v.tokens)
		}
	}
	w := newWorld(t, hosts)
	c := w.client(t, v.Host, v.Username, v.Password)
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	tags, err := c.Tags(t.Context(), v.Repository)
	if err != nil || len(tags) != 2 {
		t.Fatalf("tags %v, %v", tags, err)
	}
	for range 2 {
		got, err := c.Inspect(t.Context(), v.Repository+":1.0")
		if err != nil || len(got.Images) != 1 || got.Images[0].Architecture != "amd64" {
			t.Fatalf("image %v, %v", got, err)
		}
	}
	if bad := w.leaks(may...); bad != nil {
		t.Errorf("the credentials went to %v", bad)
	}
	if v.Realm != "" {
		var fetched int
		for _, r := range w.asked(v.Realm) {
			if strings.Contains(r, "GET "+v.Path+"?") && strings.Contains(r, "scope=repository:"+v.Repository+":pull") {
				fetched++
			}
		}
		if fetched != 1 {
			t.Errorf("the token of the repository was fetched %d times: %v", fetched, w.asked(v.Realm))
		}
	}
	_, err = w.client(t, v.Host, v.Username, "wrong").Tags(t.Context(), v.Repository)
	if !errdefs.IsUnauthorized(err) {
		t.Errorf("with a wrong password: %v", err)
	}
}

func (v vendor) registry(rw http.ResponseWriter, r *http.Request) {
	if v.Realm == v.Server && r.URL.Path == v.Path {
		v.tokens(rw, r)
		return
	}
	scope := ""
	if parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/"); len(parts) > 2 {
		scope = "repository:" + strings.Join(parts[:len(parts)-2], "/") + ":pull"
	}
	want := "Bearer token-of-" + scope
	if v.Realm == "" {
		want = "Basic " + base64.StdEncoding.EncodeToString([]byte(v.Username+":"+v.Password))
	}
	if r.Header.Get("Authorization") != want {
		rw.Header().Set("WWW-Authenticate", strings.ReplaceAll(v.Challenge, "{scope}", scope))
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(rw, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
		return
	}
	newImage("amd64").serve(rw, r)
}

func (v vendor) tokens(rw http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != v.Username || password != v.Password || r.URL.Query().Get("service") != v.Service {
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{v.Token: "token-of-" + r.URL.Query().Get("scope"), "expires_in": v.Expires})
}

// TestHarborTellsDigests reads the tags of a Harbor with their digests from its own API, and the
// repositories of a project.
func TestHarborTellsDigests(t *testing.T) {
	const host = "harbor.example.org"
	digest := sum([]byte("x"))
	w := newWorld(t, map[string]http.Handler{host: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		switch path := r.URL.EscapedPath(); {
		case path == "/service/token":
			_, _ = fmt.Fprint(rw, `{"token":"t"}`)
		case path == "/v2/" && r.Header.Get("Authorization") == "Bearer t":
		case path == "/v2/":
			rw.Header().Set("WWW-Authenticate", `Bearer realm="https://harbor.example.org/service/token",service="harbor-registry"`)
			rw.WriteHeader(http.StatusUnauthorized)
		case !ok || user != "robot$lab+scan" || password != "secret":
			rw.WriteHeader(http.StatusForbidden)
		case path == "/api/v2.0/projects/lab/repositories":
			_, _ = fmt.Fprint(rw, `[{"name":"lab/a/b"},{"name":"lab/c"},{"name":"other/d"},{"name":"lab/../e"}]`)
		case path == "/api/v2.0/projects/lab/repositories/a%252Fb/artifacts":
			_, _ = fmt.Fprintf(rw, `[{"digest":%q,"tags":[{"name":"1"},{"name":"2"}]},{"digest":"sha256:../x","tags":[{"name":"3"}]},{"digest":%q,"tags":null}]`, digest, digest)
		default:
			http.NotFound(rw, r)
		}
	})})
	c := w.client(t, host, "robot$lab+scan", "secret")
	if err := c.Ping(t.Context()); err != nil || !c.IsHarbor() {
		t.Fatal(err)
	}
	names, err := c.Project(t.Context(), "lab")
	if err != nil || !slices.Equal(names, []string{"lab/a/b", "lab/c"}) {
		t.Errorf("repositories %v, %v", names, err)
	}
	tags, err := c.Tags(t.Context(), "lab/a/b")
	if err != nil || !slices.Equal(tags, []Tag{{"1", digest}, {"2", digest}}) {
		t.Errorf("tags %v, %v", tags, err)
	}
}
