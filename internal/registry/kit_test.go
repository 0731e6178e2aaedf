package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/registry/store"
)

var key = pushtoken.Key("a key of push tokens that is long enough")

// host is a served registry and its directory.
type host struct {
	*registry.Registry
	t    *testing.T
	dir  string
	name string
}

func serveHost(t *testing.T, dir string) host {
	t.Helper()
	r, at := registrytest.Serve(t, dir, func(r *registry.Registry) { r.AllowPush(key) })
	return host{r, t, filepath.Join(dir, "blobs"), at}
}

func (h host) token(g pushtoken.Grant) string {
	h.t.Helper()
	g.Expires = time.Now().Add(time.Hour)
	token, err := key.Sign(g)
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

func as(token string) remote.Option {
	return remote.WithAuth(&authn.Basic{Username: pushtoken.User, Password: token})
}

func (h host) ref(image string) name.Reference {
	h.t.Helper()
	ref, err := name.ParseReference(h.name+"/"+image, name.Insecure)
	if err != nil {
		h.t.Fatal(err)
	}
	return ref
}

// all permits everything below team.
func (h host) all() remote.Option {
	return as(h.token(pushtoken.Grant{Namespace: "team", Delete: true}))
}

func (h host) push(image string, img v1.Image) error {
	return remote.Write(h.ref(image), img, h.all())
}

// whole reports an image that cannot be pulled completely.
func (h host) whole(image string) error {
	img, err := remote.Image(h.ref(image))
	if err != nil {
		return err
	}
	return validate.Image(img)
}

func (h host) do(method, path, token string, body []byte, header ...string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, "http://"+h.name+path, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		req.SetBasicAuth(pushtoken.User, token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (h host) sweep(o store.Options) (store.Report, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return store.Report{}, err
	}
	status, text := h.do(http.MethodPost, "/v2/_berth/sweep", h.token(pushtoken.Grant{Maintain: true}), body)
	if status != http.StatusOK {
		return store.Report{}, fmt.Errorf("sweep: %d %s", status, text)
	}
	var out registry.SweepAnswer
	if err := json.Unmarshal([]byte(text), &out); err != nil || out.Error != "" {
		return out.Report, fmt.Errorf("sweep: %s %w", out.Error, err)
	}
	return out.Report, nil
}

func (h host) mustSweep(o store.Options) store.Report {
	h.t.Helper()
	out, err := h.sweep(o)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// age makes everything in the registry look days old.
func (h host) age() {
	h.t.Helper()
	old := time.Now().Add(-48 * time.Hour)
	err := filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// files returns the number of files in the registry's directory whose base name matches.
func (h host) files(base string) int {
	h.t.Helper()
	n := 0
	err := filepath.WalkDir(h.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == base && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func randomImage(t *testing.T, size int64, layers int64) v1.Image {
	t.Helper()
	img, err := random.Image(size, layers)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
