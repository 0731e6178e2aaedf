package containerd_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
)

// mirrorServer has the content of a source, behind a login of its own, and can be wrong in several ways.
type mirrorServer struct {
	host   string
	sent   atomic.Int64
	login  bool   // it requires mirror and secret
	spoil  string // digest of content that it sends with a wrong byte
	stop   string // digest of content that it stops to send half-way
	length bool   // it tells a wrong length of manifests

	mu   sync.Mutex
	keys []string // Authorization that it got
}

func newMirror(t *testing.T, of *source) *mirrorServer {
	m := &mirrorServer{}
	to := &url.URL{Scheme: "http", Host: of.host}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Del("Authorization") },
		ModifyResponse: func(r *http.Response) error {
			if m.length && r.Request.Method == http.MethodHead {
				r.Header.Set("Content-Length", "100")
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Authorization"); key != "" {
			m.mu.Lock()
			m.keys = append(m.keys, key)
			m.mu.Unlock()
		}
		if user, password, _ := r.BasicAuth(); m.login && (user != "mirror" || password != "secret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		out := &countingWriter{w, r.Method == http.MethodGet, &m.sent}
		switch {
		case m.spoil != "" && strings.HasSuffix(r.URL.Path, m.spoil):
			proxy.ServeHTTP(&spoiler{ResponseWriter: out}, r)
		case m.stop != "" && strings.HasSuffix(r.URL.Path, m.stop):
			proxy.ServeHTTP(&spoiler{ResponseWriter: out, stop: 1 << 20}, r)
		default:
			proxy.ServeHTTP(out, r)
		}
	}))
	t.Cleanup(server.Close)
	m.host = strings.TrimPrefix(server.URL, "http://")
	return m
}

// spoiler changes the first byte of an answer, or ends the connection after some bytes.
type spoiler struct {
	http.ResponseWriter
	stop, n int
}

func (s *spoiler) Write(b []byte) (int, error) {
	if s.stop == 0 && s.n == 0 && len(b) > 0 {
		b = append([]byte{b[0] ^ 1}, b[1:]...)
	}
	if s.n += len(b); s.stop > 0 && s.n > s.stop {
		panic(http.ErrAbortHandler)
	}
	return s.ResponseWriter.Write(b)
}

func (m *mirrorServer) as(login bool) runtime.Mirror {
	if login {
		return runtime.Mirror{Host: m.host, PlainHTTP: true, Username: "mirror", Password: "secret"}
	}
	return runtime.Mirror{Host: m.host, PlainHTTP: true}
}

// Mirrors are asked in their order, and the registry for what none of them delivers. Wrong content is never used, and
// the login of the registry stays with it.
func TestMirrors(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	reference, digest, layers := s.push(t, 2, 3<<20)
	const size = 6 << 20
	for name, c := range map[string]struct {
		mirror       func(*mirrorServer)
		login        bool
		registryDown bool
		most         int64 // bytes of the registry
		least        int64
	}{
		"that has everything":             {registryDown: true},
		"with a login of its own":         {mirror: func(m *mirrorServer) { m.login = true }, login: true, registryDown: true},
		"that refuses its login":          {mirror: func(m *mirrorServer) { m.login = true }, least: size, most: size + 1<<20},
		"that sends a wrong layer":        {mirror: func(m *mirrorServer) { m.spoil = layers[0] }, least: 3 << 20, most: 4 << 20},
		"that sends a wrong manifest":     {mirror: func(m *mirrorServer) { m.spoil = digest }, least: 1, most: 1 << 20},
		"that tells a wrong length":       {mirror: func(m *mirrorServer) { m.length = true }, most: 1 << 20},
		"that stops in a layer":           {mirror: func(m *mirrorServer) { m.stop = layers[1] }, least: 1 << 20, most: 4 << 20},
		"that does not have this content": {mirror: func(m *mirrorServer) { m.host = "127.0.0.1:1" }, least: size, most: size + 1<<20},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, s)
			if c.mirror != nil {
				c.mirror(m)
			}
			// The mirror reads from the same server: what the registry itself sends is the difference.
			before, mirrored := s.sent.Load(), m.sent.Load()
			r := open(t, containerdtest.Start(t), containerdtest.Dir(t))
			origin := newOrigin(t, s)
			origin.broken.Store(c.registryDown)
			pull(t, r, runtime.PullRequest{
				Reference: strings.Replace(reference, s.host, origin.host, 1), Digest: digest, PlainHTTP: true, Username: "registry", Password: "its password",
				Mirrors: []runtime.Mirror{{Host: "127.0.0.1:1", PlainHTTP: true}, m.as(c.login)},
			})
			sent := origin.sent.Load()
			if sent < c.least || sent > c.most {
				t.Errorf("the registry sent %d bytes, not %d to %d; all %d, the mirror %d", sent, c.least, c.most, s.sent.Load()-before, m.sent.Load()-mirrored)
			}
			for _, key := range m.keys {
				if r := (&http.Request{Header: http.Header{"Authorization": {key}}}); !isMirrorLogin(r) {
					t.Errorf("the mirror got %q", key)
				}
			}
		})
	}
}

func isMirrorLogin(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && user == "mirror" && password == "secret"
}

// newOrigin is the registry of the images of a source, which counts what it sends.
func newOrigin(t *testing.T, of *source) *source {
	o := &source{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: of.host}) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(&countingWriter{w, r.Method == http.MethodGet, &o.sent}, r)
	}))
	t.Cleanup(server.Close)
	o.host = strings.TrimPrefix(server.URL, "http://")
	return o
}

// Without a digest, only the registry says what a tag stands for, and sends it.
func TestMirrorsDoNotDecideTags(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	reference, _, _ := s.push(t, 1, 1<<20)
	m := newMirror(t, s)
	r := open(t, containerdtest.Start(t), containerdtest.Dir(t))
	if _, err := r.Pull(t.Context(), runtime.PullRequest{Reference: reference, PlainHTTP: true, Mirrors: []runtime.Mirror{m.as(false)}}, func(runtime.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if n := m.sent.Load(); n > 0 {
		t.Errorf("the mirror sent %d bytes", n)
	}
}
