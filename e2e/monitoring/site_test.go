package monitoring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

const token = "the token of the monitoring"

// site is a cluster of two managers, an agent with a device, a storage proxy and a gateway, with a session and a deployment.
type site struct {
	*clustertest.Cluster
	tokenFile  string
	prometheus string // address
	gateway    string // URL
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{tokenFile: filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(s.tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	free := listen(t)
	s.prometheus = free.Addr().String()
	_ = free.Close()
	s.Cluster = clustertest.NewWith(t, 0, func(w *managertest.World) *managertest.Manager {
		w.Configure = func(cfg *manager.Config) {
			cfg.Registry, cfg.MetricsTokenFile = opsserver.NewRegistry("v1", "manager"), s.tokenFile
			cfg.RemoteWrite.URL = "http://" + s.prometheus + "/api/v1/write"
		}
		return w.Start(t)
	})
	s.World.Start(t)
	s.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 1}`)})
	clustertest.NewProxyWith(t, s.Cluster, "disk", opsserver.NewRegistry("v1", "storage"), storage.VolumeConfig{Name: "main", MountPath: t.TempDir()})
	s.serve(t)
	s.work(t)
	return s
}

// serve starts the gateway and sends it a request.
func (s *site) serve(t *testing.T) {
	t.Helper()
	web := listen(t)
	s.gateway = "http://" + web.Addr().String()
	gw, err := gateway.New(gateway.Config{
		Stores: s.Manager.Stores(), Cluster: listen(t), HTTP: web, ModelsURL: s.gateway + "/v1", PageURL: s.Manager.URL,
		Registry: opsserver.NewRegistry("v1", "gateway"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := gw.Run(ctx); err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); run.Wait() })
	resp, err := http.Get(s.gateway + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// work runs a session and ends another, and stores measurements of the first, of its machine and of a deployment, as managers do
// once a minute.
func (s *site) work(t *testing.T) {
	t.Helper()
	running := s.Create(t, clustertest.SessionInput(managertest.Vars{"name": "measured"}, "sleep", "600"))
	s.WaitFor(t, running, lifecycle.Running)
	ended := s.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	s.WaitFor(t, ended, lifecycle.Running)
	s.Terminate(t, ended, true)
	s.WaitForEnd(t, ended)
	ctx := s.System(t)
	k := s.Client.Kernel.Query().Where(kernel.SessionID(running)).OnlyX(ctx)
	served := s.Client.Deployment.Create().SetName("llama").SetDomainID(s.A.ID).SetProject(s.A.Project).SetOwner(s.A.Member).SetWanted(1).SetCurrent(1).SetTarget(1).
		SetStatus(deployment.StatusEnded).SetEndedAt(time.Now()).SetStrategy(json.RawMessage(`{}`)).SetScaling(json.RawMessage(`{}`)).SetProgress(json.RawMessage(`{}`)).SaveX(ctx)
	managertest.Eventually(t, "remote write begins", func() bool {
		got, err := s.Etcd(t).Get(t.Context(), "/berth/remote-write")
		return err == nil && len(got.Kvs) == 1
	})
	s.measure(t, *k.AgentID, map[uuid.UUID][]string{*k.AgentID: {"cpu_util", "mem_used"}, k.ID: {"cpu_util", "mem_used"}})
	s.measure(t, served.ID, map[uuid.UUID][]string{served.ID: {"request_rate", "token_rate", "first_byte_p95"}})
}

func (s *site) measure(t *testing.T, source uuid.UUID, of map[uuid.UUID][]string) {
	t.Helper()
	start := time.Now().UTC().Truncate(time.Millisecond)
	lines := series.Lines{}
	for subject, names := range of {
		for _, name := range names {
			lines.Line(subject, series.Key{Name: name}).Append(series.Line{Capacity: 100, Quality: "measured", Points: []series.Point{series.Sample(start, 25)}})
		}
	}
	codec, err := series.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	data, err := codec.Encode(start, lines)
	if err != nil {
		t.Fatal(err)
	}
	s.Client.SeriesChunk.Create().SetSource(source).SetGrain(0).SetStart(start).SetData(data).ExecX(s.System(t))
}

// configuration returns the configuration of docs/metrics.md, with the addresses of this cluster and shorter intervals.
func (s *site) configuration(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/metrics.md has no block with scrape_configs")
	}
	rules, err := filepath.Abs("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	return "global: {evaluation_interval: 2s}\nrule_files: [" + rules + "]\n" + strings.NewReplacer(
		"https://berth.example.org", s.Manager.URL, "scheme: https", "scheme: http",
		"/etc/prometheus/berth.token", s.tokenFile, "30s", "1s", "1m", "1s",
	).Replace(string(block[1]))
}

// scrape runs Prometheus until the test ends.
func (s *site) scrape(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(s.configuration(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "config", file).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	var log bytes.Buffer
	cmd := exec.Command("prometheus", "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", s.prometheus, "--web.enable-remote-write-receiver", "--log.level", "warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the last messages of Prometheus:\n%s", log.String()[max(0, log.Len()-4000):])
		}
	})
	managertest.Eventually(t, "Prometheus is ready", func() bool {
		resp, err := http.Get("http://" + s.prometheus + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// sample is one result of a query.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query returns the results of an expression.
func (s *site) query(expression string) ([]sample, error) {
	var out struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := s.get("/api/v1/query?query="+url.QueryEscape(expression), &out); err != nil {
		return nil, err
	}
	if out.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expression, out.Error)
	}
	return out.Data.Result, nil
}

func (s *site) get(path string, into any) error {
	resp, err := http.Get("http://" + s.prometheus + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}
