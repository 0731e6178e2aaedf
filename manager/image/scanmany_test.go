package image_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	enttask "github.com/berthhq/berth/ent/task"
)

// crowd is a registry in memory with many tags, of which some are broken or slow, and which asks its
// clients to wait for a while.
type crowd struct {
	perRepository, repositories int
	digests                     bool // whether its lists have them, as those of Google do
	slow                        time.Duration
	busyFrom, busyTo            int64 // the requests that are answered with 429
	requests                    atomic.Int64

	mu        sync.Mutex
	manifests map[string][]byte // by repository:tag
	configs   map[string][]byte // by digest
}

func sum(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func newCrowd(tags, repositories int) *crowd {
	c := &crowd{perRepository: tags / repositories, repositories: repositories, manifests: map[string][]byte{}, configs: map[string][]byte{}}
	for n := range tags {
		name := fmt.Sprintf("team/r%03d:t%04d", n/c.perRepository, n%c.perRepository)
		cfg, _ := json.Marshal(map[string]any{"os": "linux", "architecture": "amd64", "config": map[string]any{"Labels": map[string]string{"n": strconv.Itoa(n)}, "Env": []string{"PATH=/bin"}}})
		layer := map[string]any{"digest": sum([]byte("base")), "size": 30_000_000}
		own := map[string]any{"digest": sum([]byte(name)), "size": 1000 + n}
		m, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []any{layer, own},
			"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sum(cfg), "size": len(cfg)}})
		if n%100 == 50 {
			m = fmt.Appendf(nil, "<html>%d", n)
		}
		c.manifests[name], c.configs[sum(cfg)] = m, cfg
	}
	return c
}

func (c *crowd) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if n := c.requests.Add(1); n > c.busyFrom && n <= c.busyTo {
		rw.Header().Set("Retry-After", "1")
		rw.WriteHeader(http.StatusTooManyRequests)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	switch {
	case path == "":
	case path == "_catalog":
		var names []string
		for n := range c.repositories {
			names = append(names, fmt.Sprintf("team/r%03d", n))
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"repositories": names})
	case strings.HasSuffix(path, "/tags/list"):
		c.list(rw, strings.TrimSuffix(path, "/tags/list"))
	case strings.Contains(path, "/manifests/"):
		c.manifest(rw, r, strings.Replace(path, "/manifests/", ":", 1))
	default:
		_, digest, _ := strings.Cut(path, "/blobs/")
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = rw.Write(c.configs[digest])
	}
}

func (c *crowd) list(rw http.ResponseWriter, repository string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var tags []string
	manifest := map[string]any{}
	for n := range c.perRepository {
		tag := fmt.Sprintf("t%04d", n)
		tags = append(tags, tag)
		if c.digests {
			manifest[sum(c.manifests[repository+":"+tag])] = map[string]any{"tag": []string{tag}}
		}
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"tags": tags, "manifest": manifest})
}

func (c *crowd) manifest(rw http.ResponseWriter, r *http.Request, name string) {
	if c.slow > 0 && (name == "team/r000:t0001" || name == "team/r001:t0001") {
		select {
		case <-r.Context().Done():
		case <-time.After(c.slow):
		}
		return
	}
	c.mu.Lock()
	b := c.manifests[name]
	c.mu.Unlock()
	if b == nil {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Docker-Content-Digest", sum(b))
	rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if r.Method == http.MethodGet {
		_, _ = rw.Write(b)
	}
}

// TestScanOfACrowd scans a registry with broken and slow tags that asks to wait, twice: all good tags
// are in, each bad one is named, and the second scan costs one request for each unchanged tag; none
// where the lists have the digests.
func TestScanOfACrowd(t *testing.T) {
	const tags = 400
	for _, digests := range []bool{false, true} {
		t.Run(fmt.Sprintf("digests in lists: %v", digests), func(t *testing.T) {
			b := newBed(t)
			c := newCrowd(tags, 4)
			c.digests, c.slow = digests, time.Minute
			c.busyFrom, c.busyTo = 100, 120
			s := httptest.NewServer(c)
			t.Cleanup(s.Close)
			r := add(t, b.root, b.Service, "crowd", strings.TrimPrefix(s.URL, "http://"))
			if got := b.scan(t, r); got.Status != enttask.StatusDone || got.Done != tags || got.Message != "new: 394, failed: 6" {
				t.Errorf("the first scan: %v", got)
			}
			if n := b.Client.Image.Query().Where(entimage.StatusEQ(entimage.StatusAlive)).CountX(b.root); n != tags-6 {
				t.Errorf("%d images", n)
			}
			c.slow, c.busyTo = 0, 0 // the slow ones are well again
			first := c.requests.Swap(0)
			if got := b.scan(t, r); got.Message != "new: 2, unchanged: 394, failed: 4" {
				t.Errorf("the second scan: %v", got)
			}
			c.requests.Store(0)
			b.scan(t, r)
			again := c.requests.Load()
			if most := int64(tags + 20); !digests && again > most {
				t.Errorf("%d requests for %d unchanged tags", again, tags)
			}
			if digests && again*20 > first {
				t.Errorf("%d requests of %d, more than 5 %%", again, first)
			}
		})
	}
}

// BenchmarkScan measures scans of 10,000 tags with 1 % broken manifests, two slow tags and a burst of
// 429: the first one, and one of unchanged tags.
func BenchmarkScan(b *testing.B) {
	for _, digests := range []bool{false, true} {
		b.Run(fmt.Sprintf("digests=%v", digests), func(b *testing.B) {
			for range b.N {
				benchmarkScan(b, digests)
			}
		})
	}
}

func benchmarkScan(b *testing.B, digests bool) {
	bed := newBed(b)
	c := newCrowd(10_000, 100)
	c.digests, c.slow = digests, time.Minute
	c.busyFrom, c.busyTo = 3000, 3200
	s := httptest.NewServer(c)
	defer s.Close()
	r := add(b, bed.root, bed.Service, "crowd", strings.TrimPrefix(s.URL, "http://"))
	measure := func(what string) {
		runtime.GC()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		c.requests.Store(0)
		peak, stop := before.HeapInuse, make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapInuse)
				}
			}
		})
		at := time.Now()
		t := bed.scanFor(b, r, 10*time.Minute)
		took := time.Since(at)
		close(stop)
		watch.Wait()
		b.Logf("%s: %s, %s", what, t.Message, took)
		b.ReportMetric(took.Seconds(), what+"-s")
		b.ReportMetric(float64(c.requests.Load()), what+"-requests")
		b.ReportMetric(float64(peak-before.HeapInuse)/(1<<20), what+"-heap-MiB")
	}
	measure("first")
	c.slow, c.busyTo = 0, 0
	measure("second")
	measure("unchanged")
}

// scanFor scans a registry to the end, which can take long.
func (b *bed) scanFor(t testing.TB, r *ent.Registry, limit time.Duration) *ent.Task {
	t.Helper()
	id := b.start(t, r)
	stop := b.lead(t)
	defer stop()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got := b.Client.Task.GetX(b.root, id); got.EndedAt != nil {
			return got
		}
	}
	t.Fatalf("no end within %s", limit)
	return nil
}
