// Package managertest runs managers on real stores for tests, and sends requests over HTTP.
// Only tests import it.
package managertest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/stats"
)

// Timeout limits every wait. Nothing takes a fraction of it, even on a busy machine.
const Timeout = wait.Timeout

// World is the stores of one cluster and its users.
type World struct {
	*identitytest.World
	Group      *ent.ResourceGroup    // public
	Statements *Statements           // of every manager of this world
	Secrets    string                // the directory that its managers read
	Configure  func(*manager.Config) // changes the configuration of the next managers

	dsn, redis, etcd string
}

// New creates the stores of a cluster, which are removed after the test.
func New(t testing.TB) *World {
	t.Helper()
	plain := testenv.PostgresFrom(t, "manager", func(ctx context.Context, dsn string) error {
		client, _, err := manager.OpenStore(ctx, dsn, 0)
		if err != nil {
			return err
		}
		return client.Close()
	})
	client, _, err := manager.OpenStore(t.Context(), plain, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	w := &World{
		World: identitytest.Fill(t, client), Statements: &Statements{},
		redis: testenv.Redis(t), etcd: testenv.Etcd(t), Secrets: t.TempDir(),
	}
	w.Group = client.ResourceGroup.Create().SetName("default").SaveX(w.System(t))
	cfg, err := pgx.ParseConfig(plain)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tracer = w.Statements
	w.dsn = stdlib.RegisterConnConfig(cfg)
	t.Cleanup(func() { stdlib.UnregisterConnConfig(w.dsn) })
	return w
}

// System returns a context with the system as viewer.
func (w *World) System(t testing.TB) context.Context { return viewer.SystemContext(t.Context()) }

// Bus returns an event bus like another manager's: its events reach the managers of this
// world.
func (w *World) Bus(t testing.TB) *event.Bus {
	t.Helper()
	bus := event.New(w.Redis(t), logger())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = bus.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return bus
}

// Etcd returns a client of the world's etcd that is closed after the test.
func (w *World) Etcd(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{w.etcd}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Samples writes samples like another manager, to the store that those of this world read.
func (w *World) Samples(t testing.TB) *stats.Service {
	t.Helper()
	client := w.Redis(t)
	return stats.New(stats.Config{Redis: client, Bus: event.New(client, logger()), Logger: logger()})
}

// open returns a client of the world's Redis that is closed after the test.
// Redis connects to the Redis of the world.
func (w *World) Redis(t testing.TB) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(w.redis)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opt)
	t.Cleanup(func() { client.Close() })
	return client
}

// Manager is one manager of a World.
type Manager struct {
	*manager.Manager
	URL    string
	Served http.Handler // set by Quiet only: the handler behind URL, for requests from any address
	stop   func()

	killed bool
}

// Start runs a manager until Stop or the end of the test.
func (w *World) Start(t testing.TB) *Manager {
	t.Helper()
	return w.StartBehind(t, func(nodes string) string { return nodes })
}

// StartBehind is Start for a manager whose nodes connect to the address that through returns
// for its listener.
func (w *World) StartBehind(t testing.TB, through func(nodes string) string) *Manager {
	t.Helper()
	made, web, _ := w.make(t, through)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- made.Run(ctx) }()
	m := &Manager{Manager: made, URL: "http://" + web.Addr().String()}
	stopped := false
	m.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil && !m.killed {
				t.Errorf("manager: %v", err)
			}
		case <-time.After(Timeout):
			t.Error("manager does not stop")
		}
	}
	t.Cleanup(m.stop)
	return m
}

// Stop ends the manager and waits for it.
func (m *Manager) Stop() { m.stop() }

// Kill ends the manager like a crash: at once it reaches no store, so it cannot announce that it no
// longer leads.
func (m *Manager) Kill() {
	m.killed = true
	m.Close()
	m.stop()
}

func (w *World) make(t testing.TB, through func(string) string) (m *manager.Manager, web, nodes net.Listener) {
	t.Helper()
	web, nodes = listen(t), listen(t)
	cfg := manager.Config{
		PostgresDSN: w.dsn, RedisURL: w.redis, Etcd: manager.Etcd{Endpoints: []string{w.etcd}},
		HTTP: web, Cluster: nodes, ClusterAddress: through(nodes.Addr().String()), Secrets: w.Secrets, Version: "test", Logger: logger(),
		Registry: prometheus.NewRegistry(), ObjectStorages: []string{"127.0.0.1"},
	}
	if w.Configure != nil {
		w.Configure(&cfg)
	}
	m, err := manager.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, web, nodes
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// logger shows errors, and everything if BERTH_TEST_LOG is set.
func logger() *slog.Logger {
	level := slog.LevelError
	if os.Getenv("BERTH_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	wait.Until(t, what, ok)
}
