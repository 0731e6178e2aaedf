package web

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func page(t *testing.T) *handler {
	t.Helper()
	return read(fstest.MapFS{
		"dist/index.html":           {Data: []byte("<!doctype html><title>Berth</title>")},
		"dist/assets/worker-2b.mjs": {Data: []byte("postMessage(1)")},
		"dist/assets/app-1a.js":     {Data: []byte(strings.Repeat("console.log('berth');\n", 200))},
		"dist/assets/dot.png":       {Data: []byte{1, 2, 3}},
		"dist-missing.html":         {Data: []byte("not built")},
	})
}

func get(t *testing.T, h http.Handler, method, target string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestRoutes(t *testing.T) {
	const forever = "public, max-age=31536000, immutable"
	for _, c := range []struct {
		name, method, path string
		status             int
		cache, contentType string
	}{
		{"start", "GET", "/", 200, "no-cache", "text/html; charset=utf-8"},
		{"route of the page", "GET", "/sessions/1234", 200, "no-cache", "text/html; charset=utf-8"},
		{"hashed asset", "GET", "/assets/app-1a.js", 200, forever, "text/javascript; charset=utf-8"},
		{"worker of a page", "GET", "/assets/worker-2b.mjs", 200, forever, "text/javascript; charset=utf-8"},
		{"chunk of a former build", "GET", "/assets/gone-9f.js", 404, "", "text/plain; charset=utf-8"},
		{"dots do not leave dist", "GET", "/../dist-missing.html", 200, "no-cache", "text/html; charset=utf-8"},
		{"head", "HEAD", "/", 200, "no-cache", "text/html; charset=utf-8"},
		{"post", "POST", "/", 405, "", "text/plain; charset=utf-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := get(t, page(t), c.method, c.path, nil)
			if res.StatusCode != c.status {
				t.Fatalf("status %d, want %d", res.StatusCode, c.status)
			}
			if got := res.Header.Get("Cache-Control"); got != c.cache {
				t.Errorf("Cache-Control %q, want %q", got, c.cache)
			}
			if got := res.Header.Get("Content-Type"); got != c.contentType {
				t.Errorf("Content-Type %q, want %q", got, c.contentType)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	plain := get(t, page(t), "GET", "/assets/app-1a.js", nil)
	want, err := io.ReadAll(plain.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, accept, encoding string
	}{
		{"browser", "gzip, deflate, br", "gzip"},
		{"none", "", ""},
		{"refused", "gzip;q=0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := get(t, page(t), "GET", "/assets/app-1a.js", map[string]string{"Accept-Encoding": c.accept})
			if got := res.Header.Get("Content-Encoding"); got != c.encoding {
				t.Fatalf("Content-Encoding %q, want %q", got, c.encoding)
			}
			body := io.Reader(res.Body)
			if c.encoding == "gzip" {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%d bytes, want the %d of the file", len(got), len(want))
			}
		})
	}
	small := get(t, page(t), "GET", "/assets/dot.png", map[string]string{"Accept-Encoding": "gzip"})
	if small.Header.Get("Content-Encoding") != "" {
		t.Error("a file that does not shrink is sent compressed")
	}
}

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		name, host, url, has, hasNot string
	}{
		{"host", "berth.example:8443", "", "connect-src 'self' ws://berth.example:8443 wss://berth.example:8443;", ""},
		{"hostile host", "x; script-src *", "", "connect-src 'self';", "*"},
		{"storage elsewhere", "", "https://storage.example:8422/a/b", "connect-src 'self' https://storage.example:8422;", "/a"},
		{"storage here", "", "/storage", "connect-src 'self';", "storage"},
		{"hostile storage", "", "https://x;script-src */", "connect-src 'self';", "*"},
		{"no web", "", "data://x", "connect-src 'self';", "data://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := policy(c.host, c.url)
			if !strings.Contains(got, c.has) {
				t.Errorf("policy %q lacks %q", got, c.has)
			}
			if c.hasNot != "" && strings.Contains(got, c.hasNot) {
				t.Errorf("policy %q has %q", got, c.hasNot)
			}
		})
	}
	h := page(t)
	h.elsewhere = func(context.Context) []string { return []string{"https://storage.example"} }
	if got := get(t, h, "GET", "/data", nil).Header.Get("Content-Security-Policy"); !strings.Contains(got, " https://storage.example;") {
		t.Errorf("the page may not talk to storage elsewhere: %s", got)
	}
	res := get(t, h, "GET", "/", nil)
	for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
		if res.Header.Get(name) == "" {
			t.Errorf("no %s", name)
		}
	}
}

func TestNotBuilt(t *testing.T) {
	h := read(fstest.MapFS{"dist-missing.html": {Data: []byte("not built")}})
	if h.built {
		t.Error("built without index.html")
	}
	body, err := io.ReadAll(get(t, h, "GET", "/", nil).Body)
	if err != nil {
		t.Fatal(err)
	}
	if string(body) != "not built" {
		t.Errorf("answered %q", body)
	}
}
