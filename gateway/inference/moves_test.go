package inference

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/modelmock"
)

// engines starts and ends engines beside a router.
type engines struct {
	t       *testing.T
	w       *world
	targets []Target
	servers map[string]*httptest.Server
	n       int
}

func (e *engines) start() {
	e.n++
	id := fmt.Sprint("r", e.n)
	srv := httptest.NewServer(modelmock.New(modelmock.Config{Decode: 400}))
	e.t.Cleanup(srv.Close)
	e.servers[id] = srv
	e.targets = append(e.targets, Target{ID: id, Weight: 1, Transport: to(srv.URL)})
	e.w.model.Update(e.targets...)
}

// drain ends the oldest engine when it has no requests.
func (e *engines) drain() {
	oldest := e.targets[0].ID
	e.targets[0].Weight = 0
	e.w.model.Update(e.targets...)
	eventually(e.t, oldest+" has no requests", func() bool { return e.w.model.Outstanding(oldest) == 0 })
	e.targets = e.targets[1:]
	e.w.model.Update(e.targets...)
	e.servers[oldest].Close()
}

// kill ends the oldest engine at once.
func (e *engines) kill() {
	e.servers[e.targets[0].ID].CloseClientConnections()
	e.servers[e.targets[0].ID].Close()
	e.targets = e.targets[1:]
}

// While all replicas are replaced under load, no request fails and no stream is cut. When replicas are killed,
// only streams that had begun at them end early, and they say so.
func TestReplicasAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	e := &engines{t: t, w: newWorld(t, 0, modelmock.Config{}), servers: map[string]*httptest.Server{}}
	for range 3 {
		e.start()
	}
	var whole, cut, failed atomic.Int64
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for c := range 24 {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				stream := (c+i)%2 == 0
				code, text := e.w.text("/v1/completions", fmt.Sprintf(`{"model":"mock","prompt":"conversation %d","max_tokens":20,"stream":%t}`, c, stream))
				switch {
				case code == http.StatusOK && (!stream || strings.HasSuffix(text, "[DONE]\n\n")):
					whole.Add(1)
				case stream && strings.Contains(text, `"code":"engine_error"`):
					cut.Add(1)
				default:
					failed.Add(1)
				}
			}
		})
	}
	for range 6 { // a rolling change with a surge of one
		e.start()
		time.Sleep(20 * time.Millisecond)
		e.drain()
	}
	if cut.Load() != 0 || failed.Load() != 0 {
		t.Errorf("planned moves: %d streams cut, %d requests failed", cut.Load(), failed.Load())
	}
	for range 2 {
		e.start()
		e.kill()
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	clients.Wait()
	if failed.Load() != 0 || whole.Load() == 0 {
		t.Errorf("after kills: %d of %d requests failed", failed.Load(), whole.Load()+cut.Load()+failed.Load())
	}
	t.Logf("%d whole, %d cut by kills", whole.Load(), cut.Load())
}
