package integration

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/managertest"
)

// gate is a proxy in front of an S3 server that can make requests fail.
type gate struct {
	testenv.S3Server
	url      string
	upstream *url.URL

	mu    sync.Mutex
	wrong func(w http.ResponseWriter, r *http.Request) bool // true: wrong has sent the answer
	asked map[string]int                                    // number of requests by method and path
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{S3Server: testenv.S3(t), asked: map[string]int{}}
	g.upstream, _ = url.Parse(g.URL)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(g.upstream)
		r.Out.Host = r.In.Host // the signature covers the host
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.asked[r.Method+" "+r.URL.Path]++
		wrong := g.wrong
		g.mu.Unlock()
		if wrong == nil || !wrong(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	g.url = srv.URL
	return g
}

// breaks sets a failure; nil removes it.
func (g *gate) breaks(f func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrong = f
}

func (g *gate) count(what string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[what]
}

// answer returns the answer of the S3 server.
func (g *gate) answer(t *testing.T, r *http.Request) (*http.Response, []byte) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = g.upstream.Scheme, g.upstream.Host, ""
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		t.Error(err)
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}}, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp, body
}

func reply(w http.ResponseWriter, resp *http.Response, body []byte) {
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body)
}

// isObject reports whether a request is for the bytes of an object of the bucket.
func isObject(r *http.Request, method string) bool {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.Method == method && key != ""
}

func (g *gate) client(t *testing.T) *minio.Client {
	t.Helper()
	c, err := minio.New(g.upstream.Host, &minio.Options{Creds: credentials.NewStaticV4(g.AccessKey, g.Secret, ""), Region: g.Region})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bucket creates a bucket with objects, by key.
func (g *gate) bucket(t *testing.T, name string, objects map[string][]byte) *minio.Client {
	t.Helper()
	c := g.client(t)
	if err := c.MakeBucket(t.Context(), name, minio.MakeBucketOptions{Region: g.Region}); err != nil {
		t.Fatal(err)
	}
	for key, body := range objects {
		if _, err := c.PutObject(t.Context(), name, key, bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// storage describes a bucket behind the gate.
func (g *gate) storage(name, bucket string, more managertest.Vars) managertest.Vars {
	in := managertest.Vars{"name": name, "endpoint": g.url, "bucket": bucket, "accessKeyID": g.AccessKey, "secret": g.Secret, "region": g.Region}
	for k, v := range more {
		in[k] = v
	}
	return in
}
