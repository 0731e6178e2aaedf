package manager_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/service/postgres"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/managertest"
)

// ownStore is a manager on a PostgreSQL that a test can stop.
type ownStore struct {
	t        *testing.T
	pg       *postgres.Server
	url      string
	m        *manager.Manager
	c        *http.Client
	password string
}

func newOwnStore(t *testing.T) *ownStore {
	t.Helper()
	pg, err := postgres.Start(t.Context(), postgres.Config{Dir: filepath.Join(t.TempDir(), "pg"), Volatile: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Stop(context.Background()) })
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	m, err := manager.New(t.Context(), manager.Config{
		PostgresDSN: pg.DSN(postgres.Database), RedisURL: testenv.Redis(t), Etcd: manager.Etcd{Endpoints: []string{testenv.Etcd(t)}},
		HTTP: listen(), Cluster: listen(), Secrets: t.TempDir(), AdminEmail: "admin@example.org",
		Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	password, _, err := m.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(m.Handler())
	t.Cleanup(srv.Close)
	jar, _ := cookiejar.New(nil)
	return &ownStore{t: t, pg: pg, url: srv.URL, m: m, c: &http.Client{Jar: jar, Timeout: managertest.Timeout}, password: password}
}

// family returns the processes of a PostgreSQL, the first of them first.
func family(first int) []int {
	pids := []int{first}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var state string
		var pid, parent int
		_, rest, _ := strings.Cut(string(text), ") ")
		fmt.Sscanf(filepath.Base(filepath.Dir(path)), "%d", &pid)
		if n, _ := fmt.Sscanf(rest, "%s %d", &state, &parent); n == 2 && parent == first {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to all processes of the PostgreSQL.
func (o *ownStore) signal(sig syscall.Signal) {
	o.t.Helper()
	pids := family(o.pg.PID())
	if sig == syscall.SIGSTOP {
		watch(o.t, pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && pid == o.pg.PID() {
			o.t.Fatal(err)
		}
	}
}

// watch starts a process that continues and ends these processes after the end of this one, however
// it ends, because a stopped process would stay forever. A pipe reports the end.
func watch(t *testing.T, pids []int) {
	t.Helper()
	list := strings.Trim(fmt.Sprint(pids), "[]")
	cmd := exec.Command("/bin/sh", "-c", "trap '' HUP INT TERM; read line && exit; kill -CONT "+list+"; kill -KILL "+list)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = io.WriteString(pipe, "all is well\n")
		_ = cmd.Wait()
	})
}

// ask sends a request, and returns status, header and body. A missing answer fails the test.
func (o *ownStore) ask(method, path string, body any) (int, http.Header, string) {
	o.t.Helper()
	text, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, bytes.NewReader(text))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Berth-CSRF", "1")
	resp, err := o.c.Do(r)
	if err != nil {
		o.t.Fatalf("%s %s has no answer: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(answer)
}

func (o *ownStore) scrape() string {
	o.t.Helper()
	return scrapeOf(o.t, o.m)
}

func scrapeOf(t *testing.T, m *manager.Manager) string {
	t.Helper()
	return (&managertest.Manager{Manager: m}).Scrape(t)
}

func (o *ownStore) login() (int, http.Header, string) {
	o.t.Helper()
	return o.ask(http.MethodPost, "/auth/login", map[string]string{"email": "admin@example.org", "password": o.password})
}

func (o *ownStore) query() (int, http.Header, string) {
	o.t.Helper()
	return o.ask(http.MethodPost, "/graphql", map[string]string{"query": "{ viewer { user { id } } }"})
}

// unavailable checks an answer after which a client can retry.
func (o *ownStore) unavailable(what string, status int, h http.Header, body string) {
	o.t.Helper()
	var p struct{ Code string }
	_ = json.Unmarshal([]byte(body), &p)
	if status != http.StatusServiceUnavailable || p.Code != "UNAVAILABLE" || h.Get("Retry-After") == "" {
		o.t.Errorf("%s: %d, Retry-After %q, %s", what, status, h.Get("Retry-After"), body)
	}
}

// TestPostgreSQLIsAway tests a PostgreSQL that hangs, and then one that has stopped.
func TestPostgreSQLIsAway(t *testing.T) {
	o := newOwnStore(t)
	if status, _, body := o.login(); status != http.StatusOK {
		t.Fatalf("login: %d %s", status, body)
	}
	works := func() bool {
		status, _, body := o.query()
		return status == http.StatusOK && !strings.Contains(body, "errors")
	}
	if !works() {
		t.Fatal("no answer before the fault")
	}
	if body := o.scrape(); !strings.Contains(body, `berth_agents{status="alive"} 0`) {
		t.Fatalf("metrics: %s", body)
	}
	check := func(fault string) {
		t.Helper()
		status, _, body := o.ask(http.MethodGet, "/readyz", nil)
		if want := "postgresql unavailable\nredis ok\netcd ok\n"; status != http.StatusServiceUnavailable || !strings.HasPrefix(body, want) {
			t.Errorf("%s: readyz %d %q, want 503 %q", fault, status, body, want)
		}
		if body := o.scrape(); !strings.Contains(body, `berth_agents{status="alive"} 0`) {
			t.Errorf("%s: metrics %s", fault, body)
		}
		status, h, body := o.query()
		o.unavailable(fault+", a query", status, h, body)
		status, h, body = o.login()
		o.unavailable(fault+", a login", status, h, body)
	}
	o.signal(syscall.SIGSTOP)
	check("hangs")
	o.signal(syscall.SIGCONT)
	managertest.Eventually(t, "it works again", works)
	if err := o.pg.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("stopped")
}

// asStopper makes the test program stop a PostgreSQL and wait for its end.
const asStopper = "BERTH_TEST_STOPS_POSTGRESQL"

// A test that is killed while its PostgreSQL hangs leaves no process behind.
func TestNoStoppedPostgreSQLStays(t *testing.T) {
	if os.Getenv(asStopper) != "" {
		pg, err := postgres.Start(t.Context(), postgres.Config{Dir: filepath.Join(os.Getenv(asStopper), "pg"), Volatile: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		pids := family(pg.PID())
		(&ownStore{t: t, pg: pg}).signal(syscall.SIGSTOP)
		fmt.Println("stopped", strings.Trim(fmt.Sprint(pids), "[]"))
		select {}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestNoStoppedPostgreSQLStays$")
	dir, err := os.MkdirTemp("", "berth-stopped-") // a killed process removes nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), asStopper+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); pids == nil && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "stopped "); ok {
			for _, field := range strings.Fields(text) {
				pid, _ := strconv.Atoi(field)
				pids = append(pids, pid)
			}
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(pids) < 2 {
		t.Fatalf("the processes of PostgreSQL are %v", pids)
	}
	for _, pid := range pids {
		managertest.Eventually(t, fmt.Sprintf("process %d ends", pid), func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, rest, _ := strings.Cut(string(text), ") ")
			return err != nil || strings.HasPrefix(rest, "Z")
		})
	}
}
