package object_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// made is an object of any size. Each byte depends on the seed and its offset.
type made struct{ seed, size int64 }

func (m made) ReadAt(p []byte, at int64) (int, error) {
	n := int(min(int64(len(p)), m.size-at))
	if n <= 0 {
		return 0, io.EOF
	}
	var word [8]byte
	for i := 0; i < n; {
		w := at + int64(i)
		x := uint64(w/8+m.seed) * 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(word[:], (x^x>>29)*0xbf58476d1ce4e5b9)
		i += copy(p[i:n], word[w%8:])
	}
	return n, nil
}

func (m made) reader() *io.SectionReader { return io.NewSectionReader(m, 0, m.size) }

func (m made) etag(t *testing.T) string {
	t.Helper()
	sum := md5.New()
	if _, err := io.Copy(sum, m.reader()); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// shop serves one object as S3 does, and calls a function once when it has sent a certain part.
type shop struct {
	*httptest.Server
	mu     sync.Mutex
	object made
	etag   string
	at     int64  // an offset of the object, 0 for none
	then   func() // called once, after the bytes before it were sent
	asked  []string
}

func newShop(t *testing.T, object made) *shop {
	t.Helper()
	s := &shop{object: object, etag: object.etag(t)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Header.Get("Range"))
	if r.Header.Get("If-Match") == "" {
		s.asked = append(s.asked, "without If-Match")
	}
	o, etag := s.object, s.etag
	s.mu.Unlock()
	w.Header().Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, &counted{SectionReader: o.reader(), shop: s})
}

// counted reports the sent bytes to the shop.
type counted struct {
	*io.SectionReader
	shop *shop
}

func (c *counted) Read(p []byte) (int, error) {
	at, _ := c.Seek(0, io.SeekCurrent)
	c.shop.mu.Lock()
	then := c.shop.then
	if then == nil || at < c.shop.at {
		then = func() {}
	} else {
		c.shop.then = nil
	}
	c.shop.mu.Unlock()
	then()
	return c.SectionReader.Read(p)
}

// stops sets a function that is called once at an offset.
func (s *shop) stops(at int64, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.then, s.asked = at, then, nil
}

// begun returns the offset at which the first request since then began.
func (s *shop) begun(t *testing.T) (at int64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 || strings.Contains(fmt.Sprint(s.asked), "without") {
		t.Fatalf("asked: %q", s.asked)
	}
	if s.asked[0] != "" {
		if _, err := fmt.Sscanf(s.asked[0], "bytes=%d-", &at); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// bring imports the shop's object with the tag that was listed.
func bring(h *storagetest.Host, ctx context.Context, s *shop, etag string) (*storagepb.ObjectResult, error) {
	s.mu.Lock()
	item := &storagepb.ObjectItem{
		Path: "large", Size: s.object.size, Etag: etag, ModifiedUnixMs: 1_000_000,
		Get: &storagepb.SignedRequest{Url: s.URL + "/lake/large?X-Amz-Date=" + fmt.Sprint(time.Now().UnixNano())},
	}
	s.mu.Unlock()
	stream, err := h.Objects.Import(ctx, &storagepb.ImportRequest{Folder: h.Ref, Objects: []*storagepb.ObjectItem{item}})
	if err != nil {
		return nil, err
	}
	var result *storagepb.ObjectResult
	for {
		p, err := stream.Recv()
		if err != nil {
			return result, err
		}
		for _, r := range p.Results {
			result = r
		}
		if p.Finished {
			return result, nil
		}
	}
}

// wantObject compares the file with the object, byte by byte.
func wantObject(h *storagetest.Host, o made) {
	h.TB.Helper()
	f, err := os.Open(filepath.Join(h.Path, "large"))
	if err != nil {
		h.TB.Fatal(err)
	}
	defer f.Close()
	a, b := make([]byte, 1<<20), make([]byte, 1<<20)
	from := o.reader()
	for at := 0; ; at += len(a) {
		n, err := io.ReadFull(f, a)
		m, _ := io.ReadFull(from, b)
		if !bytes.Equal(a[:n], b[:m]) {
			h.TB.Fatalf("the file is another than the object in the MiB from %d", at)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
	}
}

const (
	keptEvery = 64 << 20
	// inFlight exceeds the sent bytes that the buffers of the sockets can contain.
	inFlight = 32 << 20
)

// The proxy is killed at random times during the copy of a large object: the next proxy continues at
// the end of the file on disk, and the result is identical to the object.
func TestLargeObjectsSurviveKillsAtRandom(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	h.Stop()
	s := newShop(t, made{1, 320<<20 + 12345})
	rnd := rand.New(rand.NewPCG(5, 6))
	var reached int64
	for kill := range 7 {
		at := reached + rnd.Int64N(s.object.size-4<<20-reached)
		cmd := h.StartChild()
		s.stops(at, func() { _ = cmd.Process.Kill() })
		if r, err := bring(h, t.Context(), s, s.etag); err == nil {
			t.Fatalf("kill %d at %d: the call ends with %v", kill, at, r)
		}
		_ = cmd.Wait() // the process was killed
		if begun := s.begun(t); begun < reached-keptEvery-inFlight || begun > reached+inFlight {
			t.Errorf("kill %d: it continues at %d, the previous proxy had reached %d", kill, begun, reached)
		}
		reached = max(at, reached)
	}
	cmd := h.StartChild()
	s.stops(0, nil)
	if r, err := bring(h, t.Context(), s, s.etag); err != nil || r.GetError() != "" {
		t.Fatalf("%v, %v", r, err)
	}
	if begun := s.begun(t); begun == 0 || begun < reached-keptEvery-inFlight {
		t.Errorf("at last it continues at %d of %d", begun, reached)
	}
	wantObject(h, s.object)
	if left := h.Staged(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	h.Kill(cmd)
}

// A proxy that stops normally keeps all bytes that have arrived. An object that has changed
// meanwhile is refused, and fetched from its beginning after it is listed again.
func TestALargeObjectAfterARestart(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	s := newShop(t, made{1, 160 << 20})
	// halfway stops the proxy in the middle of the object.
	halfway := func() {
		t.Helper()
		stop, stopped := make(chan struct{}), make(chan struct{})
		s.stops(100<<20, func() { close(stop); <-stopped })
		ended := make(chan error, 1)
		go func() {
			_, err := bring(h, context.WithoutCancel(t.Context()), s, s.etag)
			ended <- err
		}()
		<-stop
		h.Stop()
		close(stopped)
		if err := <-ended; err == nil {
			t.Fatal("it ends though its proxy stopped")
		}
		h.Start()
		s.stops(0, nil)
	}
	halfway()
	if left := h.Staged(); len(left) != 2 {
		t.Errorf("staged: %v", left)
	}
	if r, err := bring(h, t.Context(), s, s.etag); err != nil || r.GetError() != "" {
		t.Fatalf("%v, %v", r, err)
	}
	if at := s.begun(t); at < 100<<20-inFlight {
		t.Errorf("it continues at %d", at)
	}
	wantObject(h, s.object)

	if err := os.Remove(filepath.Join(h.Path, "large")); err != nil {
		t.Fatal(err)
	}
	halfway()
	old := s.etag
	s.mu.Lock()
	s.object.seed = 2
	s.etag = s.object.etag(t)
	s.mu.Unlock()
	r, err := bring(h, t.Context(), s, old)
	if err != nil || codes.Code(r.GetCode()) != codes.FailedPrecondition || !strings.Contains(r.GetError(), "the object has changed since it was listed") {
		t.Errorf("another object: %v, %v", r, err)
	}
	if left := h.Staged(); len(left) > 0 {
		t.Errorf("left behind of a changed object: %v", left)
	}
	halfway()
	s.mu.Lock()
	s.object.seed = 3
	s.etag = s.object.etag(t)
	s.mu.Unlock()
	if r, err := bring(h, t.Context(), s, s.etag); err != nil || r.GetError() != "" {
		t.Fatalf("listed again: %v, %v", r, err)
	}
	if at := s.begun(t); at != 0 {
		t.Errorf("another object is continued at %d", at)
	}
	wantObject(h, s.object)
	if left := h.Staged(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Two callers who import the same object to the same path both succeed, and a caller that cancels
// leaves nothing.
func TestALargeObjectTwiceAtOnce(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	s := newShop(t, made{4, 100 << 20})
	first, release := make(chan struct{}), make(chan struct{})
	s.stops(80<<20, func() { close(first); <-release })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := bring(h, ctx, s, s.etag)
		ended <- err
	}()
	<-first
	if r, err := bring(h, t.Context(), s, s.etag); err != nil || r.GetError() != "" {
		t.Errorf("the second: %v, %v", r, err)
	}
	wantObject(h, s.object)
	cancel()
	close(release)
	if err := <-ended; err == nil {
		t.Error("the first ends well")
	}
	wait.Until(t, "staged files are removed", func() bool { return len(h.Staged()) == 0 })
}

// An object that differs from the listed one is refused, even if its storage neither reports the
// size nor supports If-Match.
func TestObjectsThatAreOthers(t *testing.T) {
	h := storagetest.New(t)
	for name, c := range map[string]struct {
		etag     func(listed string) string
		size     int64
		wantText string
	}{
		"longer":      {func(listed string) string { return listed }, 4 << 20, "longer than the 3145728 bytes"},
		"another tag": {func(string) string { return "another" }, 3 << 20, "has changed since it was listed"},
	} {
		s := newShop(t, made{5, 3 << 20})
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"`+c.etag(s.etag)+`"`)
			w.WriteHeader(http.StatusOK)
			_, _ = io.Copy(w, made{5, c.size}.reader())
		})
		r, err := bring(h, t.Context(), s, s.etag)
		if err != nil || codes.Code(r.GetCode()) != codes.FailedPrecondition || !strings.Contains(r.GetError(), c.wantText) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		if left := h.Staged(); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}
