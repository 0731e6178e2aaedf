package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
)

// TestHostileRealms shows credentials to no token server that is not on the site of the registry.
func TestHostileRealms(t *testing.T) {
	t.Parallel()
	for realm, says := range map[string]string{
		"https://evil.example.net/token":                 "not on the site",
		"http://registry.example.org/token":              "no https",
		"http://auth.example.org/token":                  "no https",
		"https://169.254.169.254/token":                  "not on the site",
		"https://127.0.0.1:8420/graphql":                 "not on the site",
		"https://registry.example.org.evil.example.net/": "not on the site",
		"https://registry.example.org@evil.example.net/": "not a URL",
		"//registry.example.org/token":                   "no https",
		"file:///etc/passwd":                             "not a URL",
		"":                                               "not a URL",
		"gopher://registry.example.org/token":            "no https",
		"https://redirects.example.org/token":            "redirects",
		"https://other.co.uk/token":                      "not on the site",
	} {
		t.Run(realm, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]http.Handler{
				"registry.example.org": http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=\"s\"", realm))
					rw.WriteHeader(http.StatusUnauthorized)
				}),
				"redirects.example.org": http.RedirectHandler("https://evil.example.net/token", http.StatusTemporaryRedirect),
				"evil.example.net":      http.NotFoundHandler(),
			})
			c := w.client(t, "registry.example.org", "person", "secret")
			err := c.Ping(t.Context())
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error is %v", err)
			}
			if bad := w.leaks("redirects.example.org"); bad != nil || len(w.asked("evil.example.net")) > 0 {
				t.Errorf("the credentials went to %v", bad)
			}
		})
	}
}

// A registry without TLS can have its token server on the same host, without TLS too.
func TestPlainRealm(t *testing.T) {
	t.Parallel()
	c, err := Open(Registry{Host: "127.0.0.1:5000", PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	for realm, want := range map[string]bool{
		"http://127.0.0.1:5001/token": true, "http://127.0.0.2:5001/token": false, "https://127.0.0.1/token": true,
		"http://localhost:5000/token": false, "https://auth.example.org/token": false,
	} {
		if _, err := c.realm(realm); (err == nil) != want {
			t.Errorf("%s: %v", realm, err)
		}
	}
}

// TestRedirects follows redirects without the credentials, and to no address inside.
func TestRedirects(t *testing.T) {
	t.Parallel()
	img := newImage("amd64")
	var to atomic.Value
	var front http.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(rw, r, to.Load().(string)+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		img.serve(rw, r)
	})
	w := newWorld(t, map[string]http.Handler{
		"registry.example.org": front, "blobs.example.net": http.HandlerFunc(img.serve),
		"loop.example.net": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "https://loop.example.net"+r.URL.Path, http.StatusFound)
		}),
	})
	for target, says := range map[string]string{
		"https://blobs.example.net":               "",
		"http://blobs.example.net":                "redirects from https to http",
		"https://127.0.0.1":                       "of the machine itself",
		"https://[::1]":                           "of the machine itself",
		"https://[::ffff:127.0.0.1]":              "of the machine itself",
		"https://10.0.0.1":                        "private",
		"https://169.254.169.254":                 "of a link",
		"https://100.100.100.200":                 "metadata",
		"https://person:secret@blobs.example.net": "user name",
		"file:///etc":                             "without a host",
		"https://loop.example.net":                "more than 5 times",
	} {
		to.Store(target)
		got, err := w.client(t, "registry.example.org", "person", "secret").Inspect(t.Context(), "a:1")
		if says == "" && (err != nil || len(got.Images) != 1) || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", target, err, says)
		}
	}
	if bad := w.leaks("registry.example.org"); bad != nil {
		t.Errorf("the credentials went to %v", bad)
	}
}

// A registry on this machine, which the operator has named, can send its readers to another port of
// the machine, such as that of an object storage; a registry elsewhere cannot.
func TestRedirectBesideTheRegistry(t *testing.T) {
	t.Parallel()
	img := newImage("amd64")
	blobs := httptest.NewServer(http.HandlerFunc(img.serve))
	t.Cleanup(blobs.Close)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(rw, r, blobs.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		img.serve(rw, r)
	}))
	t.Cleanup(front.Close)
	c, err := Open(Registry{Host: strings.TrimPrefix(front.URL, "http://"), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Inspect(t.Context(), "a:1"); err != nil {
		t.Error(err)
	}
}

// TestBombs reads broken and huge content from a registry: each is refused by name, and nothing else
// is fetched for it.
func TestBombs(t *testing.T) {
	t.Parallel()
	good := newImage("amd64")
	layer := map[string]any{"mediaType": "l", "digest": sum(nil), "size": 1}
	change := func(key string, v any) []byte {
		var m map[string]any
		if err := json.Unmarshal(good.manifest, &m); err != nil {
			t.Fatal(err)
		}
		m[key] = v
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	many := func(n int, of any) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = of
		}
		return out
	}
	linux := map[string]any{"mediaType": ociManifest, "digest": sum([]byte("no")), "size": 1, "platform": map[string]string{"os": "linux", "architecture": "amd64"}}
	index := func(entries any) []byte {
		b, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": entries})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, c := range map[string]struct {
		manifest []byte
		says     string
		requests int64
	}{
		"5 MiB":                    {[]byte(strings.Repeat(" ", 5<<20)), "more than 4194304", 1},
		"not JSON":                 {[]byte("<html>"), "not JSON", 1},
		"depth":                    {[]byte(strings.Repeat(`{"layers":[`, 20_000)), "not JSON", 1},
		"schema 1":                 {[]byte(`{"schemaVersion":1}`), "schema 1", 1},
		"many layers":              {change("layers", many(1001, layer)), "1001 layers", 1},
		"many entries":             {index(many(1001, linux)), "1001 entries", 1},
		"an index of indexes":      {index(many(1, map[string]any{"mediaType": ociIndex, "digest": sum(nil)})), "no Linux image", 1},
		"a digest with a path":     {index(many(1, map[string]any{"mediaType": ociManifest, "digest": "sha256:../../../etc/passwd", "platform": map[string]string{"os": "linux"}})), "has the digest", 1},
		"a config with a path":     {change("config", map[string]any{"mediaType": ociConfig, "digest": "../../x", "size": 1}), "has the digest", 1},
		"a config of 1 GB":         {change("config", map[string]any{"mediaType": ociConfig, "digest": sum(good.config), "size": 1 << 30}), "configuration has 1073741824 bytes", 1},
		"a config of another size": {change("config", map[string]any{"mediaType": ociConfig, "digest": sum(good.config), "size": 1}), "not sha256", 2},
		"a negative size":          {change("layers", many(1, map[string]any{"digest": sum(nil), "size": -1})), "content of -1 bytes", 1},
		"an overflow":              {change("layers", many(2, map[string]any{"digest": sum(nil), "size": int64(1) << 62})), "content of 46", 1},
		"a chart":                  {change("config", map[string]any{"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": sum(nil), "size": 1}), "no Linux image", 1},
		"foreign layers":           {change("layers", many(1, map[string]any{"digest": sum(nil), "size": 5, "urls": []string{"http://169.254.169.254/latest"}})), "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/manifests/") {
					_, _ = rw.Write(c.manifest)
					return
				}
				good.serve(rw, r)
			}))
			t.Cleanup(s.Close)
			client, err := Open(Registry{Host: strings.TrimPrefix(s.URL, "http://"), PlainHTTP: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Inspect(t.Context(), "a:1")
			broken := errdefs.IsInvalidArgument(err) || errors.Is(err, ErrNothing)
			if c.says == "" && err != nil || c.says != "" && (!broken || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error is %v, want %q", err, c.says)
			}
			if n := client.Requests(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

// A registry that sends other content than it announces is not believed.
func TestWrongDigest(t *testing.T) {
	t.Parallel()
	img := newImage("amd64")
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			rw.Header().Set(digestHeader, sum([]byte("another")))
			_, _ = rw.Write(img.manifest)
			return
		}
		_, _ = rw.Write([]byte("another"))
	}))
	t.Cleanup(s.Close)
	c, err := Open(Registry{Host: strings.TrimPrefix(s.URL, "http://"), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"a:1", "a@" + sum([]byte("third"))} {
		if _, err := c.Inspect(t.Context(), ref); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestLists reads the pages of lists, and no page of another host.
func TestLists(t *testing.T) {
	t.Parallel()
	var link atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("last") == "" {
			rw.Header().Set("Link", link.Load().(string))
		}
		_, _ = fmt.Fprintf(rw, `{"tags":["t%s"]}`, r.URL.Query().Get("last"))
	}))
	t.Cleanup(s.Close)
	c, err := Open(Registry{Host: strings.TrimPrefix(s.URL, "http://"), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	for l, want := range map[string]int{
		`</v2/a/tags/list?last=1&n=1000>; rel="next"`: 2, `<tags/list?last=1>; rel=next`: 2, "": 1,
		`<http://evil.example.net/v2/a/tags/list>; rel="next"`: 0, `</v2/a/tags/list?n=1>; rel="next"`: 0,
	} {
		link.Store(l)
		tags, err := c.Tags(t.Context(), "a")
		if len(tags) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %v, %v", l, tags, err)
		}
	}
}

// TestBusy reads how long a registry asks its clients to wait.
func TestBusy(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "": defaultPause, "0": 100 * time.Millisecond, "-5": 100 * time.Millisecond, "99999999": maxPause,
		"99999999999999999999":                       defaultPause,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, "soon": defaultPause,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "3")
		rw.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	c, err := Open(Registry{Host: strings.TrimPrefix(s.URL, "http://"), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Inspect(t.Context(), "a:1")
	if busy := (*Busy)(nil); !errors.As(err, &busy) || busy.After != 3*time.Second {
		t.Errorf("error is %v", err)
	}
}

// A proxy and certificates are checked before they are used.
func TestProxyAndCertificates(t *testing.T) {
	for _, p := range []string{"proxy:3128", "ftp://proxy", "http://person:secret@proxy", "http://proxy/path", "http://"} {
		if _, err := ProxyURL(p); !errdefs.IsInvalidArgument(err) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := Certificates("-----BEGIN CERTIFICATE-----"); !errdefs.IsInvalidArgument(err) {
		t.Error(err)
	}
	w := newWorld(t, map[string]http.Handler{"registry.example.org": http.HandlerFunc(newImage("amd64").serve)})
	c, err := Open(Registry{Host: "registry.example.org", Proxy: w.proxy(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the certificates: %v", err)
	}
}
