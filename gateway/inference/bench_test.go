package inference

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/modelmock"
)

// BenchmarkRoute compares requests to an engine directly and through the router, one after another and
// in turn, so that both see the same machine. It reports the time that the router adds.
func BenchmarkRoute(b *testing.B) {
	w := newWorld(b, 1, modelmock.Config{})
	direct := httptest.NewServer(w.engines[0])
	defer direct.Close()
	body := `{"model":"mock","max_tokens":16,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}]}`
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	ask := func(url string) time.Duration {
		r, _ := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer secret")
		start := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return time.Since(start)
	}
	var near, far []time.Duration
	for b.Loop() {
		near = append(near, ask(direct.URL))
		far = append(far, ask(w.url))
	}
	slices.Sort(near)
	slices.Sort(far)
	at := func(list []time.Duration, q float64) float64 {
		return float64(list[int(q*float64(len(list)-1))].Microseconds())
	}
	b.ReportMetric(at(far, 0.5)-at(near, 0.5), "added-p50-µs")
	b.ReportMetric(at(far, 0.99)-at(near, 0.99), "added-p99-µs")
	b.ReportMetric(at(far, 0.5)/at(near, 0.5), "p50-ratio")
}

// choices are ways to choose a replica: the router's, with and without names of sessions, by the session alone, by load alone, and
// one after the other.
var choices = []string{"prefix", "prefix+session", "session", "load", "round-robin"}

// chooser is the models of a router that chooses in one of the ways.
type chooser struct {
	by      string
	all     *Model   // with all replicas
	single  []*Model // with one replica each
	next    atomic.Int64
	mu      sync.Mutex
	records []Record
}

func newChooser(b *testing.B, by string, engines int, engine modelmock.Config) (*chooser, string) {
	c := &chooser{by: by, all: NewModel("mock", nil)}
	var targets []Target
	for i := range engines {
		srv := httptest.NewServer(modelmock.New(engine))
		b.Cleanup(srv.Close)
		targets = append(targets, Target{ID: fmt.Sprint("r", i), Weight: 1, Transport: to(srv.URL)})
		one := NewModel("mock", nil)
		one.Update(targets[i])
		c.single = append(c.single, one)
	}
	c.all.Update(targets...)
	srv := httptest.NewServer(New(Config{Models: c}))
	b.Cleanup(srv.Close)
	return c, srv.URL
}

func (c *chooser) Open(context.Context, string, string, modelapi.API) (*Access, error) {
	n := c.next.Add(1)
	a := &Access{Model: c.all, Tenant: "t", Count: func(r Record) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.records = append(c.records, r)
	}}
	switch c.by {
	case "load": // tenants have no prefix in common
		a.Tenant = fmt.Sprint(n)
	case "round-robin":
		a.Model = c.single[int(n)%len(c.single)]
	}
	return a, nil
}

func (c *chooser) Names(context.Context, string) ([]string, error) { return []string{"mock"}, nil }

// BenchmarkChoice reports the share of prompts' tokens that 8 replicas had in their caches, and the time until the
// first token, for conversations of 10 turns and for prompts that have nothing in common.
func BenchmarkChoice(b *testing.B) {
	const conversations, turns = 96, 10
	engine := modelmock.Config{CacheBlocks: 500, Prefill: 10_000}
	words := func(seed string, n int) string { return strings.Repeat(seed+" ", n) }
	for load, prompt := range map[string]func(c, turn int) string{
		"conversations": func(c, turn int) string {
			text := words("system", 100)
			for t := range turn + 1 {
				text += words(fmt.Sprint("c", c, "t", t), 60)
			}
			return text
		},
		"unique": func(c, turn int) string { return words(fmt.Sprint("c", c, "t", turn), 200) },
	} {
		for _, by := range choices {
			b.Run(load+"/"+by, func(b *testing.B) {
				for range b.N {
					c, url := newChooser(b, by, 8, engine)
					var all sync.WaitGroup
					for n := range conversations {
						all.Go(func() {
							for t := range turns {
								text := prompt(n, t)
								if by == "session" {
									text = spelled(text, n*turns+t)
								}
								req, _ := http.NewRequest(http.MethodPost, url+"/v1/completions", strings.NewReader(`{"model":"mock","max_tokens":1,"prompt":"`+text+`"}`))
								if strings.HasSuffix(by, "session") {
									req.Header.Set("Berth-Affinity", fmt.Sprint("c", n))
								}
								resp, err := http.DefaultClient.Do(req)
								if err != nil {
									b.Error(err)
									return
								}
								_, _ = io.Copy(io.Discard, resp.Body)
								resp.Body.Close()
								time.Sleep(rand.N(400 * time.Millisecond)) // the user reads
							}
						})
					}
					all.Wait()
					c.report(b)
				}
			})
		}
	}
}

// spelled returns a JSON text with the same characters, of which some of the first ten are escaped, so that the router sees another
// prefix and the engine does not.
func spelled(text string, id int) (out string) {
	for i, c := range text[:10] {
		if id>>i&1 == 1 {
			out += fmt.Sprintf("\\u%04x", c)
			continue
		}
		out += string(c)
	}
	return out + text[10:]
}

func (c *chooser) report(b *testing.B) {
	var all Usage
	var first time.Duration
	for _, r := range c.records {
		all.Prompt += r.Usage.Prompt
		all.Cached += r.Usage.Cached
		first += r.FirstByte
	}
	b.ReportMetric(float64(all.Cached)/float64(all.Prompt), "hit-ratio")
	b.ReportMetric(float64(first.Microseconds())/1000/float64(len(c.records)), "mean-ttft-ms")
	b.ReportMetric(0, "ns/op")
}
