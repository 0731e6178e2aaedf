package manager_test

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// allRoles is a cluster of a manager, an agent with a device and a storage proxy in use,
// with the registries of the three.
func allRoles(t *testing.T) (*clustertest.Cluster, map[string]prometheus.Gatherer) {
	t.Helper()
	c := clustertest.NewWith(t, 0, func(w *managertest.World) *managertest.Manager {
		w.Configure = func(cfg *manager.Config) { cfg.Registry = opsserver.NewRegistry("v1", "manager") }
		return w.Start(t)
	})
	c.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 1}`)})
	of := opsserver.NewRegistry("v1", "storage")
	d := clustertest.NewProxyWith(t, c, "far", of, storage.VolumeConfig{Name: "main", MountPath: t.TempDir()})
	resp, err := http.Get(d.Address + "/download") // an error of transfers
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	return c, map[string]prometheus.Gatherer{"manager": c.Manager.Metrics(), "agent": c.Nodes[0].Metrics, "storage": of}
}

// gather returns the metrics by name, without those of Go and of the process.
func gather(t *testing.T, from prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]*dto.MetricFamily{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "berth_") {
			ours[f.GetName()] = f
		} else if !strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "process_") {
			t.Errorf("metric %s does not begin with berth_", f.GetName())
		}
	}
	return ours
}

// documented reads docs/metrics.md: roles and type of each metric.
type described struct {
	roles  []string
	kind   string
	labels []string
}

func documented(t *testing.T) map[string]described {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(berth_[a-z_]+)` \\| ([a-z]+) \\| [^|]+ \\| ?([^|]*?) ?\\| [^|]+ \\|$")
	section := regexp.MustCompile(`(?m)^## Of (.+)$`)
	marks := section.FindAllSubmatchIndex(text, -1)
	all := map[string]described{}
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		roles := map[string][]string{
			"every role": {"manager", "agent", "storage"}, "nodes": {"agent", "storage"},
			"managers": {"manager"}, "agents": {"agent"}, "storage proxies": {"storage"},
		}[string(text[m[2]:m[3]])]
		for _, r := range row.FindAllStringSubmatch(string(text[m[1]:end]), -1) {
			labels := strings.Fields(strings.NewReplacer("`", "", ",", " ").Replace(r[3]))
			all[r[1]] = described{roles, r[2], labels}
		}
	}
	return all
}

// TestMetricsAreDocumented checks that docs/metrics.md lists exactly the existing metrics, with
// their types and labels, and that they follow the rules of Prometheus.
func TestMetricsAreDocumented(t *testing.T) {
	c, roles := allRoles(t)
	docs := documented(t)
	if len(docs) < 70 {
		t.Fatalf("docs/metrics.md describes only %d metrics: has its form changed?", len(docs))
	}
	device := func() bool { return gather(t, roles["agent"])["berth_accelerator_utilization_ratio"] != nil }
	managertest.Eventually(t, "the device is measured", device)
	managertest.Eventually(t, "agents are counted", func() bool {
		f := gather(t, roles["manager"])
		return f["berth_plugin_up"] != nil && f["berth_agent_condition"] != nil && f["berth_slot_capacity"] != nil
	})
	found := map[string]map[string]*dto.MetricFamily{}
	for role, from := range roles {
		found[role] = gather(t, from)
		problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(found[role]))).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", role, p.Metric, p.Text)
		}
		for name, f := range found[role] {
			d, ok := docs[name]
			if !ok || !slices.Contains(d.roles, role) {
				t.Errorf("docs/metrics.md does not say that %s of %s have %s", f.GetType(), role, name)
				continue
			}
			if kind := strings.ToLower(f.GetType().String()); kind != d.kind {
				t.Errorf("%s is a %s, in docs/metrics.md it is a %s", name, kind, d.kind)
			}
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if !slices.Contains(d.labels, l.GetName()) {
						t.Errorf("docs/metrics.md does not name the label %s of %s", l.GetName(), name)
					}
				}
				if len(m.Label) != len(d.labels) {
					t.Errorf("%s has %d labels, docs/metrics.md names %v", name, len(m.Label), d.labels)
				}
			}
		}
	}
	for name, d := range docs {
		for _, role := range d.roles {
			if found[role][name] == nil {
				t.Errorf("docs/metrics.md: %s has %s, which does not exist", role, name)
			}
		}
	}
	inSource(t, docs)
	c.Manager.Stop()
}

// inSource searches the source for metrics that this test has not triggered.
func inSource(t *testing.T, docs map[string]described) {
	t.Helper()
	name := regexp.MustCompile(`"(berth_[a-z_]*[a-z])"`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", "build", "bin", "plugins", "web"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "client_golang/prometheus\"") {
			return err
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if _, ok := docs[m[1]]; !ok {
				t.Errorf("docs/metrics.md lacks %s of %s", m[1], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPeopleMakeNoSeries sends many requests of many users: the names that they choose are in no
// label, and the number of series stays the same.
func TestPeopleMakeNoSeries(t *testing.T) {
	c := clustertest.New(t, 1)
	series := func() []string {
		var names []string
		for _, from := range []prometheus.Gatherer{c.Manager.Metrics(), c.Nodes[0].Metrics} {
			for name, f := range gather(t, from) {
				if name == "berth_agent_condition" { // appears when a busy machine delays a heartbeat
					continue
				}
				for _, m := range f.Metric {
					names = append(names, fmt.Sprint(name, m.GetLabel()))
				}
			}
		}
		return names
	}
	act := func(i int) {
		as := c.Manager.Anonymous()
		as.Header = c.Member.Header.Clone()
		id, errs := clustertest.TryCreate(t, as, clustertest.SessionInput(managertest.Vars{"name": fmt.Sprint("s", i)}, "sleep", "600"))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		as.Ask(t, fmt.Sprintf("query Q%d { sessions(first: 1) { totalCount } }", i), nil, nil)
		as.Ask(t, fmt.Sprintf("{ nothing%d }", i), nil, nil)
		as.Ask(t, fmt.Sprintf("syntax%d }", i), nil, nil)
		request(t, fmt.Sprintf("METHOD%d", i), c.Manager.URL+fmt.Sprintf("/path%d", i), "")
		request(t, http.MethodPost, c.Manager.URL+"/auth/login", fmt.Sprintf(`{"email": "p%d@example.org", "password": "wrong"}`, i))
		request(t, http.MethodGet, c.Manager.URL+fmt.Sprintf("/sessions/%s/log", id), "")
		c.Terminate(t, id, true)
	}
	const known = 60 // rounds until every kind of answer was sent, including "too many attempts"
	for i := range known {
		act(i)
	}
	settle := func(n int) {
		t.Helper()
		managertest.Eventually(t, "the sessions have ended", func() bool {
			return strings.Contains(c.Manager.Scrape(t), fmt.Sprintf("berth_sessions_created_total %d\n", n)) && c.Client.Session.Query().CountX(c.System(t)) == n &&
				strings.Contains(c.Manager.Scrape(t), `berth_sessions{status="terminating"} 0`)
		})
	}
	settle(known)
	before := series()
	for i := known; i < 200; i++ {
		act(i)
	}
	settle(200)
	for _, s := range series() {
		if !slices.Contains(before, s) {
			t.Errorf("new after %d rounds: %s", known, s)
		}
	}
}

func request(t *testing.T, method, url, body string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestStatesWithNobodyInThem has a series for each state from the start.
func TestStatesWithNobodyInThem(t *testing.T) {
	c := clustertest.New(t, 0)
	text := c.Manager.Scrape(t)
	for _, status := range lifecycle.All {
		if want := fmt.Sprintf("berth_sessions{status=%q} 0\n", status); !status.Final() && !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for _, want := range []string{`berth_pending_sessions{resource_group="default"} 0`, `berth_agents{status="lost"} 0`, `berth_tunnels{role="agent"} 0`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	managertest.Eventually(t, "it leads", func() bool {
		text := c.Manager.Scrape(t)
		return strings.Contains(text, "berth_leader 1\n") && strings.Contains(text, "berth_elections_won_total 1\n") &&
			!strings.Contains(text, "berth_leader_since_timestamp_seconds 0\n") && strings.Contains(text, `berth_dependency_up{dependency="etcd",role="manager"} 1`)
	})
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	managertest.Eventually(t, "the queue is counted", func() bool {
		text := c.Manager.Scrape(t)
		return strings.Contains(text, `berth_pending_sessions{resource_group="default"} 1`) &&
			!strings.Contains(text, `berth_pending_oldest_age_seconds{resource_group="default"} 0`+"\n") &&
			strings.Contains(text, `berth_scheduler_refusals_total{reason="room"} 1`)
	})
	c.Terminate(t, id, false)
	managertest.Eventually(t, "the end is counted", func() bool {
		return strings.Contains(c.Manager.Scrape(t), `berth_sessions_ended_total{reason="user_requested",status="cancelled"} 1`)
	})
}
