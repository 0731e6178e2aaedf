package remotewrite_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/remotewrite"
)

// receiver keeps samples as a Prometheus does: a request with a sample that is not newer than the last of its series is refused
// as a whole.
type receiver struct {
	mu      sync.Mutex
	down    bool
	header  http.Header
	last    map[string]int64
	samples map[string]int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.header = req.Header
	packed, _ := io.ReadAll(req.Body)
	raw, err := snappy.Decode(nil, packed)
	var in prompb.WriteRequest
	if err == nil {
		err = in.Unmarshal(raw)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	last, count := maps.Clone(r.last), map[string]int{}
	for _, ts := range in.Timeseries {
		text := []string{}
		for _, l := range ts.Labels {
			text = append(text, l.Name+"="+l.Value)
		}
		if !slices.IsSorted(text) {
			http.Error(w, "labels are not in order", http.StatusBadRequest)
			return
		}
		key := strings.Join(text, ",")
		for _, p := range ts.Samples {
			if p.Timestamp <= last[key] {
				http.Error(w, "out of order sample", http.StatusBadRequest)
				return
			}
			last[key] = p.Timestamp
			count[key]++
		}
	}
	r.last = last
	for key, n := range count {
		r.samples[key] += n
	}
}

func (r *receiver) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// total returns the number of samples of the series whose labels contain a text.
func (r *receiver) total(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, count := range r.samples {
		if strings.Contains(key, text) {
			n += count
		}
	}
	return n
}

type bed struct {
	*testing.T
	client   *ent.Client
	etcd     *clientv3.Client
	receiver *receiver
	url      string
	agents   []*ent.Agent
	codec    *series.Codec
}

func newBed(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	b := &bed{T: t, client: identitytest.Client(t), receiver: &receiver{last: map[string]int64{}, samples: map[string]int{}}}
	var err error
	if b.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.etcd.Close() })
	if b.codec, err = series.NewCodec(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(b.receiver)
	t.Cleanup(s.Close)
	b.url = s.URL
	ctx := viewer.SystemContext(t.Context())
	group := b.client.ResourceGroup.Create().SetName("gpu").SaveX(ctx)
	for i := range 2 {
		b.agents = append(b.agents, b.client.Agent.Create().SetName(fmt.Sprintf("node-%d", i)).SetResourceGroup(group).SaveX(ctx))
	}
	return b
}

// store stores a minute of samples of a machine, one each 5 s.
func (b *bed) store(source uuid.UUID, start time.Time) {
	b.Helper()
	lines := series.Lines{}
	for i := range 12 {
		at := start.Add(time.Duration(i) * 5 * time.Second)
		lines.Line(source, series.Key{Name: "cpu_util"}).Append(series.Line{Unit: "percent", Capacity: 400, Quality: "measured", Points: []series.Point{series.Sample(at, float64(i))}})
		lines.Line(source, series.Key{Name: "cuda-util", Device: "GPU-1"}).Append(series.Line{Quality: "measured", Points: []series.Point{series.Sample(at, 50)}})
	}
	data, err := b.codec.Encode(start, lines)
	if err != nil {
		b.Fatal(err)
	}
	b.client.SeriesChunk.Create().SetSource(source).SetGrain(0).SetStart(start).SetData(data).ExecX(viewer.SystemContext(b.Context()))
}

// lead runs a leader until the function that it returns is called.
func (b *bed) lead(change func(*remotewrite.Config)) (stop func(), metrics *prometheus.Registry) {
	b.Helper()
	metrics = prometheus.NewRegistry()
	cfg := remotewrite.Config{URL: b.url, Client: b.client, Etcd: b.etcd, Registry: metrics, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	s, err := remotewrite.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Lead(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	b.Cleanup(stop)
	return stop, metrics
}

// began waits until a leader has recorded where it begins.
func (b *bed) began() {
	b.Helper()
	wait.Until(b.T, "a position in etcd", func() bool {
		got, err := b.etcd.Get(b.Context(), "/berth/remote-write")
		return err == nil && len(got.Kvs) == 1
	})
}

func (b *bed) arrives(text string, want int) {
	b.Helper()
	wait.Until(b.T, fmt.Sprintf("%d samples with %s", want, text), func() bool { return b.receiver.total(text) >= want })
	if n := b.receiver.total(text); n != want {
		b.Errorf("%d samples with %s, want %d", n, text, want)
	}
}

func TestSamplesArrive(t *testing.T) {
	b := newBed(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Minute)
	b.store(b.agents[0].ID, now.Add(-10*time.Minute)) // before the first leader: not sent
	_, _ = b.lead(func(c *remotewrite.Config) { c.TokenFile = token })
	b.began()
	b.store(b.agents[0].ID, now.Add(-2*time.Minute))
	b.store(b.agents[1].ID, now.Add(-2*time.Minute))
	b.arrives("__name__=berth_measured_machine_cpu_util,agent=node-0,group=gpu", 12)
	b.arrives("__name__=berth_measured_machine_cpu_util,agent=node-1,group=gpu", 12)
	b.arrives("__name__=berth_measured_device_cuda_util,agent=node-0,device=GPU-1,group=gpu", 12)
	b.arrives("__name__=berth_measured_machine_cpu_util_capacity,agent=node-0", 1)
	b.receiver.mu.Lock()
	defer b.receiver.mu.Unlock()
	if got := b.receiver.header.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("authorization %q", got)
	}
}

// TestAfterAnOutage stops the receiver, and the leader too: everything arrives once.
func TestAfterAnOutage(t *testing.T) {
	b := newBed(t)
	now := time.Now().UTC().Truncate(time.Minute)
	stop, _ := b.lead(nil)
	b.began()
	b.store(b.agents[0].ID, now.Add(-9*time.Minute))
	b.arrives("machine_cpu_util,agent=node-0", 12)
	b.receiver.set(true)
	for i := 8; i > 4; i-- {
		b.store(b.agents[0].ID, now.Add(-time.Duration(i)*time.Minute))
	}
	stop() // another leader begins while the receiver is down
	_, metrics := b.lead(nil)
	wait.Until(t, "a failure", func() bool { return failures(metrics) > 0 })
	b.receiver.set(false)
	b.arrives("machine_cpu_util,agent=node-0", 5*12)
}

func failures(from *prometheus.Registry) (n float64) {
	families, _ := from.Gather()
	for _, f := range families {
		if f.GetName() == "berth_remote_write_failures_total" {
			n = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return n
}

// TestRefusedSamplesStopNothing sends a machine's samples that are older than those which the receiver has, beside good ones.
func TestRefusedSamplesStopNothing(t *testing.T) {
	b := newBed(t)
	now := time.Now().UTC().Truncate(time.Minute)
	_, _ = b.lead(nil)
	b.began()
	b.store(b.agents[0].ID, now.Add(-2*time.Minute))
	b.arrives("machine_cpu_util,agent=node-0", 12)
	b.store(b.agents[0].ID, now.Add(-5*time.Minute))
	b.store(b.agents[1].ID, now.Add(-5*time.Minute))
	b.store(uuid.New(), now.Add(-5*time.Minute)) // of a machine that was removed
	b.arrives("machine_cpu_util,agent=node-1", 12)
	if n := b.receiver.total("machine_cpu_util,agent=node-0"); n != 12 {
		t.Errorf("%d samples of node-0, want 12", n)
	}
}

// TestOldSamplesAreSkipped checks the bound of the buffer.
func TestOldSamplesAreSkipped(t *testing.T) {
	b := newBed(t)
	now := time.Now().UTC().Truncate(time.Minute)
	_, _ = b.lead(func(c *remotewrite.Config) { c.Buffer = time.Hour })
	b.began()
	b.store(b.agents[0].ID, now.Add(-2*time.Hour))
	b.store(b.agents[1].ID, now.Add(-2*time.Minute))
	b.arrives("machine_cpu_util,agent=node-1", 12)
	if n := b.receiver.total("agent=node-0"); n != 0 {
		t.Errorf("%d samples that are older than the buffer", n)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  remotewrite.Config
		want bool
	}{
		"off":                    {remotewrite.Config{}, true},
		"with a token":           {remotewrite.Config{URL: "https://p/api/v1/write", TokenFile: "t"}, true},
		"a token without a URL":  {remotewrite.Config{TokenFile: "t"}, false},
		"a password in the URL":  {remotewrite.Config{URL: "https://a:b@p/api/v1/write"}, false},
		"not a URL of the web":   {remotewrite.Config{URL: "file:///etc/passwd"}, false},
		"a user alone":           {remotewrite.Config{URL: "https://p/w", User: "u"}, false},
		"a user and a token":     {remotewrite.Config{URL: "https://p/w", User: "u", PasswordFile: "p", TokenFile: "t"}, false},
		"a buffer in the future": {remotewrite.Config{URL: "https://p/w", Buffer: -1}, false},
	} {
		if err := c.cfg.Check(); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
