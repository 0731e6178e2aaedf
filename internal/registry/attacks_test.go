package registry_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	godigest "github.com/opencontainers/go-digest"

	"github.com/berthhq/berth/internal/registry/pushtoken"
)

func pushGrant(repository string) pushtoken.Grant {
	return pushtoken.Grant{Repository: repository, Delete: true}
}

func (h host) ageUploads() { h.age() }

// A token opens its own repositories and nothing else, whatever the path looks like.
func TestTokensStayInTheirRepositories(t *testing.T) {
	h := serveHost(t, t.TempDir())
	if err := h.push("team/secret:1", randomImage(t, 500, 1)); err != nil {
		t.Fatal(err)
	}
	secret := randomImage(t, 700, 1)
	if err := h.push("team/secret:2", secret); err != nil {
		t.Fatal(err)
	}
	layers, err := secret.Layers()
	if err != nil {
		t.Fatal(err)
	}
	d, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	one, space, admin := h.token(pushGrant("mine/x")), h.token(pushtoken.Grant{Namespace: "mine"}), h.token(pushtoken.Grant{Maintain: true})
	for name, c := range map[string]struct {
		method, path, token string
		want                int
	}{
		"another repository":           {"PUT", "/v2/team/secret/manifests/1", one, 403},
		"another namespace":            {"POST", "/v2/team/x/blobs/uploads/", space, 403},
		"a longer name":                {"POST", "/v2/mine2/x/blobs/uploads/", space, 403},
		"the namespace itself":         {"POST", "/v2/mine/blobs/uploads/", space, 403},
		"upwards":                      {"POST", "/v2/mine/../team/secret/blobs/uploads/", space, 403},
		"upwards, encoded":             {"POST", "/v2/mine/%2e%2e/team/secret/blobs/uploads/", space, 403},
		"a slash, encoded":             {"GET", "/v2/mine%2f..%2fteam/manifests/1", one, 403},
		"reads of another repository":  {"GET", "/v2/team/secret/manifests/1", one, 403},
		"mount of another repository":  {"POST", "/v2/mine/x/blobs/uploads/?from=team/secret&mount=" + d.String(), one, 403},
		"the list of repositories":     {"GET", "/v2/_catalog", one, 403},
		"a sweep with a push token":    {"POST", "/v2/_berth/sweep", space, 403},
		"images with a sweep's token":  {"GET", "/v2/team/secret/manifests/1", admin, 403},
		"a digest as a path":           {"GET", "/v2/mine/x/blobs/sha256:../../../../etc/passwd", one, 403},
		"a digest as a path, encoded":  {"GET", "/v2/mine/x/blobs/sha256:%2e%2e%2f%2e%2e%2fpasswd", one, 403},
		"an upload's id as a path":     {"PATCH", "/v2/mine/x/blobs/uploads/..%2f..%2fdata", one, 403},
		"an unknown algorithm":         {"GET", "/v2/mine/x/blobs/md5:d41d8cd98f00b204e9800998ecf8427e", one, 400},
		"a deletion without the right": {"DELETE", "/v2/mine/x/manifests/1", space, 403},
		"a forged token":               {"GET", "/v2/mine/x/manifests/1", one + "x", 401},
	} {
		if status, text := h.do(c.method, c.path, c.token, nil); status != c.want {
			t.Errorf("%s: %d %s, want %d", name, status, text, c.want)
		}
	}
	// A digest alone gives no user the bytes: the client has to send them.
	if status, _ := h.do("POST", "/v2/mine/x/blobs/uploads/?mount="+d.String(), space, nil); status != http.StatusAccepted {
		t.Errorf("a mount without a source: %d, want an upload", status)
	}
	if status, _ := h.do("GET", "/v2/mine/x/blobs/"+d.String(), space, nil); status != http.StatusNotFound {
		t.Errorf("a blob of another repository: %d", status)
	}
}

// Manifests that clients could misread, or that are too large, are refused.
func TestHostileManifests(t *testing.T) {
	h := serveHost(t, t.TempDir())
	token := h.token(pushGrant("team/x"))
	config := []byte("{}")
	d := godigest.FromBytes(config)
	if status, text := h.do("POST", "/v2/team/x/blobs/uploads/?digest="+d.String(), token, config); status != 201 {
		t.Fatal(status, text)
	}
	const oci = "application/vnd.oci.image.manifest.v1+json"
	desc := func(digest string, size int) string {
		return fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d}`, digest, size)
	}
	for name, c := range map[string]struct {
		body, kind string
		want       int
	}{
		"sound":                 {`{"schemaVersion":2,"mediaType":"` + oci + `","config":` + desc(d.String(), 2) + `,"layers":[]}`, oci, 201},
		"image and index":       {`{"schemaVersion":2,"config":` + desc(d.String(), 2) + `,"layers":[],"manifests":[]}`, oci, 400},
		"another content type":  {`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`, oci, 400},
		"a wrong size":          {`{"schemaVersion":2,"mediaType":"` + oci + `","config":` + desc(d.String(), 3) + `,"layers":[]}`, oci, 400},
		"a path for a digest":   {`{"schemaVersion":2,"mediaType":"` + oci + `","config":` + desc("sha256:../../x", 2) + `,"layers":[]}`, oci, 400},
		"a path for a subject":  {`{"schemaVersion":2,"mediaType":"` + oci + `","config":` + desc(d.String(), 2) + `,"layers":[],"subject":` + desc("sha256:../../x", 2) + `}`, oci, 400},
		"a missing layer":       {`{"schemaVersion":2,"mediaType":"` + oci + `","config":` + desc(godigest.FromString("?").String(), 2) + `,"layers":[]}`, oci, 400},
		"version 1":             {`{"schemaVersion":1}`, oci, 400},
		"no JSON":               {"hello", oci, 400},
		"five million bytes":    {`{"schemaVersion":2,"x":"` + strings.Repeat("x", 5_000_000) + `"}`, oci, 413},
		"an unknown media type": {`{"schemaVersion":2,"mediaType":"text/html","config":` + desc(d.String(), 2) + `}`, "text/html", 400},
	} {
		status, text := h.do("PUT", "/v2/team/x/manifests/1", token, []byte(c.body), "Content-Type", c.kind)
		if status != c.want {
			t.Errorf("%s: %d %.300s, want %d", name, status, text, c.want)
		}
	}
}

// A push that exceeds the quota of its token is refused with the numbers, and leaves nothing.
func TestQuotaOfAPush(t *testing.T) {
	h := serveHost(t, t.TempDir())
	token := h.token(pushtoken.Grant{Namespace: "team", Quota: &pushtoken.Quota{Of: "project vision", Used: 10_000, Max: 20_000}})
	err := remote.Write(h.ref("team/large:1"), randomImage(t, 30_000, 1), as(token))
	if err == nil || !strings.Contains(err.Error(), "project vision has 10000 bytes of images of at most 20000 bytes") {
		t.Errorf("a push that is too large: %v", err)
	}
	if n := h.files("data"); n > 1 { // the configuration
		t.Errorf("%d objects of the refused push are left", n)
	}
	token = h.token(pushtoken.Grant{Namespace: "team", From: "x", Quota: &pushtoken.Quota{Of: "project vision", Used: 10_000, Max: 20_000}})
	if err := remote.Write(h.ref("team/small:1"), randomImage(t, 6000, 1), as(token)); err != nil {
		t.Errorf("a push within the quota: %v", err)
	}
	if err := remote.Write(h.ref("team/second:1"), randomImage(t, 6000, 1), as(token)); err == nil {
		t.Error("two pushes with one token exceed the quota")
	}
}

// A full disk refuses a push by the number of free bytes, shows nothing of it, and frees what it wrote.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("needs to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	h := serveHost(t, dir)
	if err := h.push("team/before:1", randomImage(t, 1<<20, 1)); err != nil {
		t.Fatal(err)
	}
	// go-containerregistry repeats what a server cannot do for a while.
	token := h.token(pushGrant("team/large"))
	content := make([]byte, 12<<20)
	_, _ = rand.Read(content)
	path := "/v2/team/large/blobs/uploads/?digest=" + godigest.FromBytes(content).String()
	for range 3 {
		status, text := h.do("POST", path, token, content)
		if status != http.StatusInsufficientStorage || !strings.Contains(text, "bytes are free") {
			t.Fatalf("a push to a full disk: %d %s", status, text)
		}
	}
	if n := h.files("data"); n != 3 {
		t.Errorf("the registry has %d objects, want the 3 of the first image", n)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil || int64(st.Bavail)*st.Bsize < 6<<20 {
		t.Errorf("%d bytes are free (%v): the refused push keeps its bytes", int64(st.Bavail)*st.Bsize, err)
	}
	if err := h.whole("team/before:1"); err != nil {
		t.Error(err)
	}
	if err := h.push("team/after:1", randomImage(t, 1<<20, 1)); err != nil {
		t.Errorf("a push that fits: %v", err)
	}
}

// A client that leaves in the middle can continue its upload, and a second writer is refused.
func TestAnInterruptedUpload(t *testing.T) {
	h := serveHost(t, t.TempDir())
	token := h.token(pushGrant("team/x"))
	content := bytes.Repeat([]byte("0123456789"), 1000)
	d := godigest.FromBytes(content)
	id := "0123456789abcdef"
	if err := os.MkdirAll(h.dir+"/docker/registry/v2/repositories/team/x/_uploads/"+id, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.dir+"/docker/registry/v2/repositories/team/x/_uploads/"+id+"/data", content[:4000], 0o600); err != nil {
		t.Fatal(err)
	}
	path := "/v2/team/x/blobs/uploads/" + id
	if status, text := h.do("PATCH", path, token, content[5000:], "Content-Range", "5000-9999"); status != 416 {
		t.Errorf("a gap: %d %s", status, text)
	}
	if status, text := h.do("PUT", path+"?digest="+d.String(), token, content[4000:], "Content-Range", "4000-9999"); status != 201 {
		t.Errorf("the rest after a restart: %d %s", status, text)
	}
	if status, text := h.do("GET", "/v2/team/x/blobs/"+d.String(), token, nil); status != 200 || text != string(content) {
		t.Errorf("the blob: %d, %d bytes", status, len(text))
	}
}
