package inference

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

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

// BenchmarkChoice reports the share of prompts' tokens that replicas had in their caches, for
// conversations of many turns over 8 replicas, with the choice by prefix and by load alone.
func BenchmarkChoice(b *testing.B) {
	for _, by := range []string{"prefix", "load"} {
		b.Run(by, func(b *testing.B) {
			w := newWorld(b, 8, modelmock.Config{CacheBlocks: 400})
			for b.Loop() {
				w.records = nil
				for turn := range 8 {
					for c := range 40 {
						prompt := fmt.Sprintf("conversation %d:%s", c, strings.Repeat(fmt.Sprintf(" turn of %d", c), 20*(turn+1)))
						if by == "load" {
							w.model.set.prefixes = newPrefixes()
						}
						w.text("/v1/completions", `{"model":"mock","max_tokens":1,"prompt":"`+prompt+`"}`)
					}
				}
			}
			var all Usage
			for _, r := range w.records {
				all.Prompt += r.Usage.Prompt
				all.Cached += r.Usage.Cached
			}
			b.ReportMetric(float64(all.Cached)/float64(all.Prompt), "hit-ratio")
		})
	}
}
