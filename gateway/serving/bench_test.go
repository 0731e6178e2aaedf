package serving_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/modelmock"
	"github.com/berthhq/berth/manager/deployment/key"
)

// BenchmarkServe compares requests to an engine directly, and through a gateway with stores and a tunnel, one after another
// and in turn, so that all see the same machine. It reports the time that the gateway adds, for a key without limits and
// for one with a limit.
func BenchmarkServe(b *testing.B) {
	w := newWorld(b)
	_, at := w.engine(modelmock.Config{Model: "m"})
	d := w.deploy("m", nil)
	w.revision(d, 1, at)
	w.replica(d, 1, deploymentreplica.PhaseReady)
	_, free := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	_, limited := w.key(w.A.Member, key.CreateDeploymentKeyInput{RequestsPerMinute: ptr(1_000_000_000)})
	body := `{"model":"m","max_tokens":16,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}]}`
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	ask := func(url, secret string) time.Duration {
		r, _ := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+secret)
		start := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		return time.Since(start)
	}
	ask(w.url, free) // reads the key and the replicas
	ask(w.url, limited)
	var direct, through, counted []time.Duration
	for b.Loop() {
		direct = append(direct, ask(at, ""))
		through = append(through, ask(w.url, free))
		counted = append(counted, ask(w.url, limited))
	}
	micros := func(list []time.Duration, q float64) float64 {
		slices.Sort(list)
		return float64(list[int(q*float64(len(list)-1))].Nanoseconds()) / 1000
	}
	b.ReportMetric(micros(direct, 0.5), "direct-p50-µs")
	b.ReportMetric(micros(through, 0.5)-micros(direct, 0.5), "added-p50-µs")
	b.ReportMetric(micros(through, 0.99)-micros(direct, 0.99), "added-p99-µs")
	b.ReportMetric(micros(counted, 0.5)-micros(through, 0.5), "limit-p50-µs")
	b.ReportMetric(micros(counted, 0.99)-micros(through, 0.99), "limit-p99-µs")
	b.ReportMetric(micros(through, 0.5)/micros(direct, 0.5), "p50-ratio")
}
