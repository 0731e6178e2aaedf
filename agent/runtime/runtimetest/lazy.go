package runtimetest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// PushLazy builds an image in the format eStargz: the test program, and files of random bytes, /data/0 to
// /data/n-1. It returns the reference, the digest, and the size of its layers.
func (r *Registry) PushLazy(t testing.TB, repository, prog string, n, size int) (reference, digest string, total int64) {
	t.Helper()
	archive, err := rootFS(prog)
	if err != nil {
		t.Fatal(err)
	}
	base, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	img := empty.Image
	for _, layer := range [][]byte{base, noise(t, n, size)} {
		var out bytes.Buffer
		w := estargz.NewWriterLevel(&out, 1)
		if err := w.AppendTar(bytes.NewReader(layer)); err != nil {
			t.Fatal(err)
		}
		toc, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: l, Annotations: map[string]string{estargz.TOCJSONDigestAnnotation: toc.String()}})
		if err != nil {
			t.Fatal(err)
		}
		total += int64(out.Len())
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", goarch
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	reference = r.Host + "/" + repository + ":latest"
	ref, err := name.ParseReference(reference, name.Insecure)
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return reference, hash.String(), total
}

func noise(t testing.TB, n, size int) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	data := make([]byte, size)
	for i := range n {
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(data)
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("data/%d", i), Mode: 0o644, Size: int64(size), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Throttle is a proxy in front of a registry that counts what it sends, and that can stop it.
type Throttle struct {
	Host string
	Sent atomic.Int64
	Down atomic.Bool // answers 503
	Rate int64       // bytes per second over all answers; 0: no limit

	mu   sync.Mutex
	next time.Time     // when the next bytes can be sent
	gate chan struct{} // closed: whole layers are sent
}

// NewThrottle starts a proxy that sends parts of layers, and whole layers only after Open.
func NewThrottle(t testing.TB, r *Registry) *Throttle {
	t.Helper()
	p := &Throttle{gate: make(chan struct{})}
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.Host})
	to.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if p.Down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		part := q.Header.Get("Range") != "" && !strings.HasSuffix(q.Header.Get("Range"), "-")
		if strings.Contains(q.URL.Path, "/blobs/sha256:") && q.Method == http.MethodGet && !part {
			w = &gated{ResponseWriter: w, gate: p.gate, done: q.Context().Done()}
		}
		to.ServeHTTP(&counted{w, p}, q)
	}))
	t.Cleanup(func() { p.Open(); s.Close() })
	p.Host = strings.TrimPrefix(s.URL, "http://")
	return p
}

// Open lets whole layers pass.
func (p *Throttle) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

// gated lets small documents pass, and stops larger ones at the gate.
type gated struct {
	http.ResponseWriter
	gate <-chan struct{}
	done <-chan struct{}
	n    int
}

func (g *gated) Write(b []byte) (int, error) {
	if g.n += len(b); g.n > 16<<10 {
		select {
		case <-g.gate:
		case <-g.done:
			return 0, io.ErrClosedPipe
		}
	}
	return g.ResponseWriter.Write(b)
}

// Unwrap lets the proxy flush.
func (g *gated) Unwrap() http.ResponseWriter { return g.ResponseWriter }

type counted struct {
	http.ResponseWriter
	proxy *Throttle
}

func (c *counted) Write(b []byte) (int, error) {
	c.proxy.await(len(b))
	n, err := c.ResponseWriter.Write(b)
	c.proxy.Sent.Add(int64(n))
	return n, err
}

// await waits until the rate permits n more bytes.
func (p *Throttle) await(n int) {
	if p.Rate == 0 {
		return
	}
	p.mu.Lock()
	at := p.next
	if now := time.Now(); at.Before(now) {
		at = now
	}
	p.next = at.Add(time.Duration(int64(n) * int64(time.Second) / p.Rate))
	p.mu.Unlock()
	time.Sleep(time.Until(at))
}

// Unwrap lets the proxy flush.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
