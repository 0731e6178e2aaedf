package monitoring_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// TestAlerts checks the rules and runs their unit tests.
func TestAlerts(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts.test.yml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestAlertsAreAboutMetrics checks that every metric of the alerts is documented, which other tests compare with the source.
func TestAlertsAreAboutMetrics(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`berth_[a-z_]+`).FindAllString(string(rules), -1) {
		if !strings.Contains(string(docs), "`"+strings.TrimSuffix(name, "_bucket")+"`") {
			t.Errorf("docs/metrics.md does not describe %s", name)
		}
	}
}

// dashboard is the part of a dashboard of Grafana that has queries.
type dashboard struct {
	Title  string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query any
		}
	}
}

func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, d)
	}
	return all
}

// values are those of the variables of dashboards.
var values = strings.NewReplacer("$__rate_interval", "1m", "$group", "default", "$agent", "a", "$device", ".*", "$slot", "cpu")

// queries returns the expressions of a dashboard: those of its panels, and those that list the values of its variables.
func (d dashboard) queries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			out[fmt.Sprintf("%s, %s, %d", d.Title, p.Title, i)] = values.Replace(target.Expr)
		}
	}
	list := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)
	for _, v := range d.Templating.List {
		of, ok := v.Query.(map[string]any)
		if !ok {
			continue // the data source
		}
		m := list.FindStringSubmatch(fmt.Sprint(of["query"]))
		if m == nil {
			t.Errorf("%s: variable %s has the query %v", d.Title, v.Name, of["query"])
			continue
		}
		out[d.Title+", variable "+v.Name] = fmt.Sprintf("count by (%s) (%s)", m[2], values.Replace(m[1]))
	}
	return out
}

// TestPrometheus lets a real Prometheus find and scrape all roles with the configuration of the documentation. Every query of
// every dashboard returns data there.
func TestPrometheus(t *testing.T) {
	s := newSite(t)
	s.guarded(t)
	s.scrape(t)
	wait.For(t, func() error {
		up, err := s.query(`sum by (role) (up{job="berth"})`)
		if err != nil {
			return err
		}
		got := []string{}
		for _, r := range up {
			got = append(got, fmt.Sprintf("%s %v", r.Metric["role"], r.Value[1]))
		}
		slices.Sort(got)
		if want := "agent 1, gateway 1, manager 2, storage 1"; strings.Join(got, ", ") != want {
			return fmt.Errorf("up: %v, want %s", got, want)
		}
		return nil
	})
	for _, d := range dashboards(t) {
		for name, expression := range d.queries(t) {
			wait.For(t, func() error {
				found, err := s.query(expression)
				if err == nil && len(found) == 0 {
					err = fmt.Errorf("%s: no data: %s", name, expression)
				}
				return err
			})
		}
	}
	s.bounded(t)
	s.rules(t)
}

// mostSeries limits the series of one metric of one process here: a histogram has 15 buckets, for each of a few routes or results. A metric
// whose label had names of users or requests would exceed it in a larger cluster.
const mostSeries = 150

// bounded checks the number of series of each metric and process.
func (s *site) bounded(t *testing.T) {
	t.Helper()
	found, err := s.query(`topk(5, count by (__name__, role, name) ({__name__=~"berth_.+", job="berth"}))`)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		if n, _ := strconv.Atoi(fmt.Sprint(r.Value[1])); n > mostSeries {
			t.Errorf("%s of %s %s has %d series, more than %d", r.Metric["__name__"], r.Metric["role"], r.Metric["name"], n, mostSeries)
		}
	}
	// Names and e-mail addresses of people are only in the measurements of remote write.
	for _, label := range []string{"user", "session", "project", "email"} {
		found, err := s.query(fmt.Sprintf(`{job="berth", %s!=""}`, label))
		if err != nil || len(found) > 0 {
			t.Errorf("%d scraped series have the label %s (%v)", len(found), label, err)
		}
	}
}

// rules checks that Prometheus evaluates every alert without an error.
func (s *site) rules(t *testing.T) {
	t.Helper()
	wait.For(t, func() error {
		var out struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
		}
		if err := s.get("/api/v1/rules", &out); err != nil {
			return err
		}
		n := 0
		for _, g := range out.Data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return fmt.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
				}
				n++
			}
		}
		if n < 15 {
			return fmt.Errorf("%d alerts", n)
		}
		return nil
	})
}

// guarded checks that the routes need the token, and that a caller cannot choose an address.
func (s *site) guarded(t *testing.T) {
	t.Helper()
	get := func(path, bearer string) int {
		r, err := http.NewRequest(http.MethodGet, s.Manager.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for path, want := range map[string]int{
		"/metrics/targets":              http.StatusOK,
		"/metrics/agent/a":              http.StatusOK,
		"/metrics/storage/disk":         http.StatusOK,
		"/metrics/agent/unknown":        http.StatusServiceUnavailable,
		"/metrics/manager/127.0.0.1:22": http.StatusNotFound,
		"/metrics/gateway/127.0.0.1:22": http.StatusNotFound,
		"/metrics/user/a":               http.StatusNotFound,
	} {
		if got := get(path, token); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if got := get(path, ""); got != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, got)
		}
		if got := get(path, "wrong"); got != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token: %d", path, got)
		}
	}
}
