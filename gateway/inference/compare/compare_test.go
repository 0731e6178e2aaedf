package compare

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	rate    = 500 // requests per second
	rounds  = 8   // of one second, in turn with the engine alone
	streams = 2000
	// drain limits the time after a round until its requests have ended.
	drain = 20 * time.Second
)

// load is a client of a gateway.
type load struct {
	url    string
	client *http.Client

	mu     sync.Mutex
	took   []time.Duration
	failed int
}

func newLoad(at string) *load {
	return &load{url: "http://" + at, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * rate}, Timeout: drain}}
}

var question = `{"model":"mock","max_tokens":16,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}]}`

func (l *load) ask(ctx context.Context, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer secret")
	return l.client.Do(r)
}

func (l *load) one() {
	start := time.Now()
	resp, err := l.ask(context.Background(), question)
	whole := false
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		whole = err == nil && resp.StatusCode == http.StatusOK
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !whole {
		l.failed++
		return
	}
	l.took = append(l.took, time.Since(start))
}

// round sends requests for one second, each at its time, whether or not those before have ended. It returns how
// long it took until all had ended.
func (l *load) round() time.Duration {
	start := time.Now()
	var all sync.WaitGroup
	for i := range rate {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / rate)))
		all.Go(l.one)
	}
	all.Wait()
	return time.Since(start)
}

func (l *load) at(q float64) float64 {
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return float64(l.took[int(q*float64(len(l.took)-1))].Microseconds())
}

// BenchmarkGateways reports the time that a gateway adds at 500 requests per second and its CPU time for a
// request. The engine alone gets the same requests in turn.
func BenchmarkGateways(b *testing.B) {
	for _, g := range gateways {
		b.Run(g.name, func(b *testing.B) {
			behind := engine(b, "0")
			at, pid := g.start(b, behind)
			near, far := newLoad(behind), newLoad(at)
			for _, l := range []*load{near, far} { // connections, and what a program does first
				for range 3 {
					l.one()
				}
				l.took, l.failed = nil, 0
			}
			b.ResetTimer()
			before, took := busy(pid), time.Duration(0)
			for range b.N {
				for range rounds {
					near.round()
					took += far.round()
				}
			}
			b.StopTimer()
			if len(far.took) == 0 {
				b.Fatal("the gateway answered nothing")
			}
			b.ReportMetric(far.at(0.5)-near.at(0.5), "added-p50-µs")
			b.ReportMetric(far.at(0.99)-near.at(0.99), "added-p99-µs")
			b.ReportMetric(near.at(0.5), "direct-p50-µs")
			b.ReportMetric(near.at(0.99), "direct-p99-µs")
			b.ReportMetric(float64((busy(pid)-before).Microseconds())/float64(len(far.took)), "cpu-µs/op")
			b.ReportMetric(float64(len(far.took))/took.Seconds(), "answers/s")
			b.ReportMetric(float64(far.failed), "failed")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStreams reports the memory of a gateway with 2,000 open streams, each of which has its first tokens.
func BenchmarkStreams(b *testing.B) {
	for _, g := range gateways {
		b.Run(g.name, func(b *testing.B) {
			at, pid := g.start(b, engine(b, "0.01"))
			l := newLoad(at)
			l.client.Timeout = 0
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			open := func() bool {
				resp, err := l.ask(ctx, strings.Replace(question, `"model"`, `"stream":true,"model"`, 1))
				if err != nil || resp.StatusCode != http.StatusOK {
					return false
				}
				n, _ := io.ReadAtLeast(resp.Body, make([]byte, 64), 6)
				return n > 0
			}
			if !open() {
				b.Fatal("the gateway does not stream")
			}
			time.Sleep(time.Second)
			before := memory(pid)
			late := time.AfterFunc(2*time.Minute, leave)
			var all sync.WaitGroup
			var mu sync.Mutex
			opened := 0
			for range 50 {
				all.Go(func() {
					for range streams / 50 {
						if open() {
							mu.Lock()
							opened++
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
			inTime := late.Stop()
			b.ReportMetric(float64(memory(pid))/(1<<20), "MiB")
			b.ReportMetric(float64(before)/(1<<20), "idle-MiB")
			b.ReportMetric(float64(opened), "streams")
			b.ReportMetric(0, "ns/op")
			if !inTime {
				b.Logf("%s opened %d of %d streams in 2 minutes", g.name, opened, streams)
			}
		})
	}
}
