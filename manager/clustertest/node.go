package clustertest

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/condition"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/fake"
	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/manager/managertest"
)

// Node is a machine. Its directory and its containers outlive its agent.
type Node struct {
	Name    string
	Dir     string
	Host    *fake.Host
	Network *FakeNetwork
	Stop    func()

	Metrics     *prometheus.Registry // of the agent that runs
	Ready       http.Handler         // its /readyz
	Plugins     []agent.PluginConfig
	Sysfs       string // for a different machine
	Volumes     map[string]string
	ScopeMounts map[string]scopemount.Rule // rules for the mounts of scopes
}

// Grow adds machines with plugins, and waits until their agents have joined.
func (c *Cluster) Grow(t *testing.T, nodes int, plugins ...agent.PluginConfig) {
	t.Helper()
	for range nodes {
		n := &Node{Name: string(rune('a' + len(c.Nodes))), Dir: t.TempDir(), Network: NewFakeNetwork(len(c.Nodes)),
			Host: fake.NewHost(runtime.Image{Reference: ImageReference, Digest: "sha256:1"}), Plugins: plugins}
		c.Nodes = append(c.Nodes, n)
		c.Join(t, n, c.Manager)
	}
}

// Join starts the agent of a machine with a new join token and waits until the manager has
// registered it.
func (c *Cluster) Join(t *testing.T, n *Node, managers ...*managertest.Manager) {
	t.Helper()
	token, err := c.Manager.NewJoinToken(t.Context(), "agent")
	if err != nil {
		t.Fatal(err)
	}
	before := "" // the incarnation of the existing row
	if row, err := c.Client.Agent.Query().Where(entagent.Name(n.Name)).Only(c.System(t)); err == nil {
		before = row.Incarnation
	}
	n.Stop = c.RunAgent(t, n, token, managers...)
	managertest.Eventually(t, "agent "+n.Name+" joins", func() bool {
		a, err := c.Client.Agent.Query().Where(entagent.Name(n.Name), entagent.StatusEQ(entagent.StatusAlive)).WithDevices().Only(c.System(t))
		return err == nil && a.Incarnation != before && len(a.Edges.Devices) > 1
	})
}

// RunAgent runs the agent of a machine until stop is called or the test ends.
func (c *Cluster) RunAgent(t *testing.T, n *Node, token string, managers ...*managertest.Manager) (stop func()) {
	t.Helper()
	level := slog.LevelError
	if os.Getenv("BERTH_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	n.Metrics = opsserver.NewRegistry("test", "agent")
	cfg := agent.Config{
		Registry: n.Metrics, Version: "test-agent", Name: n.Name, Dir: n.Dir, JoinToken: token, CAFingerprint: c.Manager.Fingerprint(), RunnerPath: filepath.Join(n.Dir, "runner"),
		Runtime: fake.New(n.Host, n.Name), Builders: fake.Builders{Host: n.Host}, Network: n.Network, Plugins: n.Plugins, Sysfs: n.Sysfs, Volumes: n.Volumes, ScopeMounts: n.ScopeMounts, KeepSessions: true, StatsInterval: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}
	if c.Log != nil {
		cfg.Logger = c.Log
	}
	// These agents start no containers, so the free space of this machine does not matter.
	cfg.Conditions = condition.Limits{DiskPercent: 1e-9, DiskBytes: 1, InodePercent: 1e-9, MemoryBytes: 1}
	for _, m := range managers {
		cfg.Managers = append(cfg.Managers, m.ClusterAddress())
	}
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Ready = opsserver.Ready(a.Checks())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case <-done:
			case <-time.After(managertest.Timeout):
				t.Error("agent does not stop")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// AgentID returns the ID of the agent of a machine.
func (c *Cluster) AgentID(t *testing.T, n *Node) uuid.UUID {
	t.Helper()
	return c.Client.Agent.Query().Where(entagent.Name(n.Name)).OnlyIDX(c.System(t))
}

// NodeOf returns the machine on which the kernel of a session is placed.
func (c *Cluster) NodeOf(t *testing.T, id uuid.UUID) *Node {
	t.Helper()
	k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().OnlyX(c.System(t))
	for _, n := range c.Nodes {
		if k.Edges.Agent != nil && k.Edges.Agent.Name == n.Name {
			return n
		}
	}
	return nil
}

// CountContainers returns the number of containers on a machine.
func (c *Cluster) CountContainers(t *testing.T, n *Node) int {
	t.Helper()
	list, err := fake.New(n.Host, n.Name).Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
