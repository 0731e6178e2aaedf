package containerd_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/runtime/containerd/containerdtest"
)

// source is a registry that counts the bytes of layers that it sends.
type source struct {
	host   string
	sent   atomic.Int64
	broken atomic.Bool
}

func newSource(t *testing.T) *source {
	s := &source{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(&countingWriter{w, r.Method == http.MethodGet, &s.sent}, r)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

type countingWriter struct {
	http.ResponseWriter
	count bool
	n     *atomic.Int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	if w.count {
		w.n.Add(int64(len(b)))
	}
	return w.ResponseWriter.Write(b)
}

// push stores an image with layers of random bytes.
func (s *source) push(t *testing.T, layers, size int) (reference, digest string, layer []string) {
	t.Helper()
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for i := range layers {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		data := make([]byte, size)
		rand.Read(data)
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: fmt.Sprint("file", i), Mode: 0o644, Size: int64(size)})); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(data)
		_ = w.Close()
		l := static.NewLayer(b.Bytes(), types.OCIUncompressedLayer)
		var err error
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
		d, _ := l.Digest()
		layer = append(layer, d.String())
	}
	reference = s.host + "/test/layers:1"
	ref, err := name.ParseReference(reference, name.Insecure)
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return reference, sum.String(), layer
}

// others are other agents as a source, which are the runtimes of this test.
type others struct {
	from    []*containerd.Runtime
	corrupt string // digest of a part that they send with a wrong byte
	cut     string // digest of a part that they stop to send half-way
	mu      sync.Mutex
	next    map[string]int
	blamed  []string
	ended   map[string]bool
}

func (o *others) Open(ctx context.Context, r runtime.PartRequest) (runtime.PeerPart, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == nil {
		o.next, o.ended = map[string]int{}, map[string]bool{}
	}
	for o.next[r.Digest] < len(o.from) {
		at := o.next[r.Digest]
		o.next[r.Digest]++
		p, err := o.from[at].OpenPart(ctx, r.Digest)
		if err != nil {
			continue
		}
		s := &sending{part: p, at: r.Offset, o: o, name: fmt.Sprint("agent-", at)}
		if at == 0 {
			s.corrupt, s.cut = r.Digest == o.corrupt, r.Digest == o.cut
		}
		return s, nil
	}
	return nil, nil
}

func (o *others) Ended(digest string, present bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[digest] = present
}

type sending struct {
	part         runtime.Part
	at           int64
	o            *others
	name         string
	corrupt, cut bool
}

func (s *sending) Agent() string { return s.name }
func (s *sending) Close() error  { return s.part.Close() }
func (s *sending) Corrupt(context.Context) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.o.blamed = append(s.o.blamed, s.name)
}
func (s *sending) Read(b []byte) (int, error) {
	have, complete, err := s.part.Await(context.Background(), s.at)
	if err != nil {
		return 0, err
	}
	if s.at == have && complete {
		return 0, io.EOF
	}
	if s.cut && s.at > s.part.Size()/2 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.part.ReadAt(b[:min(int64(len(b)), have-s.at, 64<<10)], s.at)
	if s.corrupt && s.at == 0 {
		b[n/2] ^= 1
	}
	s.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// two returns two runtimes, of which the first has the image.
func two(t *testing.T) (s *source, a, b *containerd.Runtime, reference, digest string, layers []string) {
	s = newSource(t)
	envA, envB := containerdtest.Start(t), containerdtest.Start(t)
	a, b = open(t, envA, containerdtest.Dir(t)), open(t, envB, containerdtest.Dir(t))
	reference, digest, layers = s.push(t, 3, 3<<20)
	pull(t, a, runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true})
	return s, a, b, reference, digest, layers
}

func pull(t *testing.T, r *containerd.Runtime, req runtime.PullRequest) {
	t.Helper()
	img, err := r.Pull(t.Context(), req, func(runtime.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if img.Digest != req.Digest {
		t.Errorf("digest is %s, want %s", img.Digest, req.Digest)
	}
}

func TestImageComesFromAnotherAgent(t *testing.T) {
	t.Parallel()
	s, a, b, reference, digest, layers := two(t)
	s.sent.Store(0)
	s.broken.Store(true) // it is not needed
	from := &others{from: []*containerd.Runtime{a}}
	pull(t, b, runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true, Peers: from})
	for _, l := range append(layers, digest) {
		if !from.ended[l] {
			t.Errorf("the end of %s was not reported", l)
		}
	}
	list, err := b.Images(t.Context())
	if err != nil || len(list) != 1 || len(list[0].Parts) != len(layers)+2 {
		t.Errorf("images: %+v, %v; want one with a manifest, a configuration and %d layers", list, err, len(layers))
	}
}

func TestWrongBytesAreFetchedAgain(t *testing.T) {
	t.Parallel()
	s, a, b, reference, digest, layers := two(t)
	s.sent.Store(0)
	from := &others{from: []*containerd.Runtime{a}, corrupt: layers[1]}
	pull(t, b, runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true, Peers: from})
	if len(from.blamed) != 1 || from.blamed[0] != "agent-0" {
		t.Errorf("blamed: %v, want agent-0", from.blamed)
	}
	if n := s.sent.Load(); n < 3<<20 || n > 4<<20 {
		t.Errorf("the registry sent %d bytes, want one layer", n)
	}
}

func TestTransferContinuesAtTheRegistry(t *testing.T) {
	t.Parallel()
	s, a, b, reference, digest, layers := two(t)
	s.sent.Store(0)
	from := &others{from: []*containerd.Runtime{a}, cut: layers[2]}
	pull(t, b, runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true, Peers: from})
	if len(from.blamed) > 0 {
		t.Errorf("blamed: %v", from.blamed)
	}
}

// The third runtime reads from the second while that one still reads from the first, which sends wrong bytes:
// neither of them keeps the bytes, and the second is not blamed.
func TestWrongBytesAreWithdrawn(t *testing.T) {
	t.Parallel()
	_, a, b, reference, digest, layers := two(t)
	c := open(t, containerdtest.Start(t), containerdtest.Dir(t))
	first := &others{from: []*containerd.Runtime{a}, corrupt: layers[0]}
	second := &others{from: []*containerd.Runtime{b}}
	var both sync.WaitGroup
	both.Go(func() {
		_, err := b.Pull(t.Context(), runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true, Peers: first}, func(runtime.Progress) {})
		if err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		_, err := c.Pull(t.Context(), runtime.PullRequest{Reference: reference, Digest: digest, PlainHTTP: true, Peers: second}, func(runtime.Progress) {})
		if err != nil {
			t.Error(err)
		}
	})
	both.Wait()
	if len(first.blamed) != 1 {
		t.Errorf("blamed by the second: %v, want the first", first.blamed)
	}
}

func TestRemovedImageLeavesSharedParts(t *testing.T) {
	t.Parallel()
	_, a, _, reference, digest, layers := two(t)
	copyOf := strings.Replace(reference, ":1", ":2", 1)
	from, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(from)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := name.NewTag(copyOf, name.Insecure)
	if err := remote.Write(to, img); err != nil {
		t.Fatal(err)
	}
	pull(t, a, runtime.PullRequest{Reference: copyOf, Digest: digest, PlainHTTP: true})
	for left := 2; left > 0; left-- {
		if p, err := a.OpenPart(t.Context(), layers[0]); err != nil {
			t.Fatalf("with %d images: %v", left, err)
		} else {
			p.Close()
		}
		list, err := a.Images(t.Context())
		if err != nil || len(list) != left {
			t.Fatalf("images: %v, %v", list, err)
		}
		if err := a.RemoveImage(t.Context(), list[0]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.OpenPart(t.Context(), layers[0]); err == nil {
		t.Error("a layer is left without an image")
	}
}
