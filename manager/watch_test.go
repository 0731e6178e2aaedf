package manager_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/service/redis"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// TestAStoreGoesAwayAndComesBack checks that a manager logs one line for the outage and one for its
// end.
func TestAStoreGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	srv, err := redis.Start(t.Context(), redis.Config{Dir: filepath.Join(t.TempDir(), "redis"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.Background()) })
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	log := clustertest.NewJournal()
	m, err := manager.New(t.Context(), manager.Config{
		PostgresDSN: testenv.Postgres(t), RedisURL: srv.URL(), Etcd: manager.Etcd{Endpoints: []string{testenv.Etcd(t)}},
		HTTP: listen(), Cluster: listen(), Secrets: t.TempDir(), AdminEmail: "admin@example.org", Logger: log.Logger, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	up := func(want string) func() bool {
		return func() bool {
			return strings.Contains(scrapeOf(t, m), `berth_dependency_up{dependency="redis",role="manager"} `+want)
		}
	}
	managertest.Eventually(t, "Redis is looked at", up("1"))
	if err := syscall.Kill(srv.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "Redis is missed", up("0"))
	if err := syscall.Kill(srv.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "Redis is back", func() bool { return len(log.Lines(`msg="dependency is back"`, "dependency=redis")) > 0 })
	away := log.Lines("level=WARN", `msg="dependency is unavailable"`, "dependency=redis")
	back := log.Lines("level=INFO", `msg="dependency is back"`, "dependency=redis", "away_seconds=")
	if len(away) != 1 || len(back) != 1 {
		t.Errorf("%d lines about the outage of Redis, %d about its end, want 1 and 1:\n%s%s", len(away), len(back), away, back)
	}
}

// TestVersionsOfAllRoles reads the version of every program on every machine.
func TestVersionsOfAllRoles(t *testing.T) {
	c := clustertest.New(t, 0)
	c.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 1}`)})
	d := clustertest.NewProxyOf(t, c, "far", storage.VolumeConfig{Name: "main", MountPath: t.TempDir()})
	var got struct {
		Cluster struct {
			Managers []struct {
				Address, Version string
				Leads            bool
			}
			StorageProxies []struct{ Name, Version string }
		}
		Agents struct {
			Edges []struct {
				Node struct {
					Version string
					Plugins []struct{ Name, Version string }
				}
			}
		}
	}
	const versions = `{ cluster { managers { address version leads } storageProxies { name version } } agents { edges { node { version plugins { name version } } } } }`
	super := c.Manager.As(t, c.Superadmin)
	managertest.Eventually(t, "the manager has announced itself", func() bool {
		super.Must(t, versions, nil, &got)
		return len(got.Cluster.Managers) == 1 && got.Cluster.Managers[0].Version != "" && got.Cluster.Managers[0].Leads
	})
	if m := got.Cluster.Managers[0]; m.Address != c.Manager.ClusterAddress() || m.Version != "test" {
		t.Errorf("the manager is %+v", m)
	}
	if p := got.Cluster.StorageProxies; len(p) != 1 || p[0].Name != "far" || p[0].Version != d.Config.Version {
		t.Errorf("the proxies are %+v", p)
	}
	if a := got.Agents.Edges; len(a) != 1 || a[0].Node.Version != "test-agent" || len(a[0].Node.Plugins) != 1 || a[0].Node.Plugins[0].Version == "" {
		t.Errorf("the agents are %+v", a)
	}
	if code := c.Member.Ask(t, versions, nil, nil).Code(); code != "PERMISSION_DENIED" {
		t.Errorf("a member gets the versions: %s", code)
	}
}

// TestAnAgentSaysWhetherItIsReady reads the readiness of an agent whose manager stops.
func TestAnAgentSaysWhetherItIsReady(t *testing.T) {
	c := clustertest.New(t, 1)
	ask := func() (int, string) {
		answer := httptest.NewRecorder()
		c.Nodes[0].Ready.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code, answer.Body.String()
	}
	if code, text := ask(); code != http.StatusOK || text != "kernels ok\nruntime ok\nmachine ok\nmanagers ok\n" {
		t.Errorf("an agent that works: %d %q", code, text)
	}
	c.Manager.Stop()
	managertest.Eventually(t, "the agent misses its manager", func() bool {
		code, text := ask()
		return code == http.StatusServiceUnavailable && strings.HasSuffix(text, "managers unavailable\n")
	})
	c.Nodes[0].Stop()
}

// TestRequestsAreFollowedThroughRoles has the id of a request in the lines of every role
// that does something for it: the manager that took it, the leader, and the agent.
func TestRequestsAreFollowedThroughRoles(t *testing.T) {
	log, agents := clustertest.NewJournal(), clustertest.NewJournal()
	c := clustertest.NewWith(t, 0, func(w *managertest.World) *managertest.Manager {
		w.Configure = func(cfg *manager.Config) { cfg.Logger = log.Logger }
		return w.Start(t)
	})
	c.Log = agents.Logger
	c.Grow(t, 1)
	c.Member.Header.Set(requestid.Header, "create-it")
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.Member.Header.Del(requestid.Header)
	session := "session=" + id.String()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the manager:\n%s\nthe agent:\n%s", log.Lines(), agents.Lines())
		}
	})
	managertest.Eventually(t, "the agent starts it on behalf of the request", func() bool {
		return len(agents.Lines("call=CreateKernel", "kernel=", "request=create-it")) > 0
	})
	c.Member.Header.Set(requestid.Header, "end-it")
	if errs := c.Terminate(t, id, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	managertest.Eventually(t, "its end is in the log", func() bool { return len(log.Lines(`msg="session ended"`, session)) > 0 })
	for what, found := range map[string]int{
		"creation":  len(log.Lines("level=INFO", `msg="session created"`, session, "request=create-it")),
		"placement": len(log.Lines("level=INFO", `msg="session placed"`, session, "agents=[a]", "request=create-it")),
		"end":       len(log.Lines("level=INFO", `msg="session ended"`, session, "reason=user_requested", "request=end-it")),
	} {
		if found != 1 {
			t.Errorf("%d lines of the manager about the %s, want 1", found, what)
		}
	}
	if len(agents.Lines("call=TerminateKernel", "request=end-it")) == 0 {
		t.Error("no line of the agent reports the end with the id of its request")
	}
}
