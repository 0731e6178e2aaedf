package manager_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/condition"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent"
	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/netlist"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/managertest"
)

// wires is a fake network that counts its addresses.
type wires struct {
	mu   sync.Mutex
	held map[string]bool

	reach     network.Reach
	wide      []network.Attachment
	connected []network.Attachment
	port      func(net.Conn) // serves a connection to any port
}

func newWires(n int) *wires {
	endpoint := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n + 1)}), network.DefaultPort)
	return &wires{held: map[string]bool{}, reach: network.Reach{Endpoint: endpoint, MTU: 1450}}
}

func (w *wires) Reserve(key, session string) (network.Attachment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[key] = true
	return network.Attachment{Key: key, Session: session, Address: netip.MustParseAddr("192.0.2.1")}, nil
}

func (w *wires) Join(a network.Attachment) (network.Attachment, error) {
	_, err := w.Reserve(a.Key, a.Session)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wide = append(w.wide, a)
	return a, err
}

// joined is the latest attachment of a kernel in a network over several agents.
func (w *wires) joined(kernel uuid.UUID) (last network.Attachment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.wide {
		if strings.Contains(a.Key, kernel.String()) {
			last = a
		}
	}
	return last
}

func (w *wires) Adopt(a network.Attachment) error {
	_, err := w.Reserve(a.Key, a.Session)
	return err
}

func (w *wires) Reach() network.Reach { return w.reach }

func (w *wires) Remove(a network.Attachment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, a.Key)
	return nil
}

func (w *wires) Connect(_ context.Context, a network.Attachment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected = append(w.connected, a)
	return nil
}

// allowed returns the networks that the latest kernel of a session can reach, as people write them.
func (w *wires) allowed(session uuid.UUID) (last []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.connected {
		if a.Session == session.String() {
			last = netlist.Strings(a.Allow)
		}
	}
	return last
}

func (w *wires) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

func (w *wires) Create(a network.Attachment) (string, error)                 { return "/" + a.Key, nil }
func (w *wires) Sweep() error                                                { return nil }
func (w *wires) Traffic(network.Attachment) (received, sent uint64, e error) { return 1, 2, nil }
func (w *wires) Dial(context.Context, network.Attachment, uint16) (net.Conn, error) {
	if w.port == nil {
		return nil, errors.New("no network")
	}
	near, far := net.Pipe()
	go w.port(far)
	return near, nil
}

const image = "registry.test/prog:latest"

// node is a machine, whose contents outlive its agent.
type node struct {
	name  string
	dir   string
	host  *fake.Host
	wires *wires
	stop  func()

	metrics *prometheus.Registry // of the agent that runs
	ready   http.Handler         // its /readyz
	plugins []agent.PluginConfig
	sysfs   string // for a different machine
	volumes map[string]string
	scopes  map[string]scopemount.Rule // rules for the mounts of scopes
}

// cluster is a world with one manager and machines without containers.
type cluster struct {
	*managertest.World
	m     *managertest.Manager
	as    *managertest.Client // a member of project A
	image *ent.Image
	nodes []*node
	log   *slog.Logger // of the agents; nil: warnings are shown
}

func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	return newClusterOf(t, nodes, func(w *managertest.World) *managertest.Manager { return w.Start(t) })
}

// newClusterOf is newCluster with a manager that is started otherwise.
func newClusterOf(t *testing.T, nodes int, start func(*managertest.World) *managertest.Manager) *cluster {
	t.Helper()
	t.Parallel() // its stores are its own, and it mostly waits
	c := &cluster{World: managertest.New(t)}
	ctx := c.System(t)
	reg := c.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(ctx)
	c.image = c.Client.Image.Create().SetReference(image).SetName("prog:latest").SetArchitecture(goruntime.GOARCH).
		SetDigest("sha256:1").SetRegistry(reg).SaveX(ctx)
	c.Client.Image.Create().SetReference("registry.test/gone:latest").SetName("gone:latest").SetArchitecture(goruntime.GOARCH).
		SetDigest("sha256:2").SetRegistry(reg).SaveX(ctx)
	c.m = start(c.World)
	c.as = c.m.As(t, c.A.Member)
	c.grow(t, nodes)
	return c
}

// grow adds machines.
func (c *cluster) grow(t *testing.T, nodes int, plugins ...agent.PluginConfig) {
	t.Helper()
	for range nodes {
		n := &node{name: string(rune('a' + len(c.nodes))), dir: t.TempDir(), wires: newWires(len(c.nodes)),
			host: fake.NewHost(runtime.Image{Reference: image, Digest: "sha256:1"}), plugins: plugins}
		c.nodes = append(c.nodes, n)
		c.join(t, n, c.m)
	}
}

// join starts the agent of a machine with a new join token and waits until it is known.
func (c *cluster) join(t *testing.T, n *node, managers ...*managertest.Manager) {
	t.Helper()
	token, err := c.m.NewJoinToken(t.Context(), "agent")
	if err != nil {
		t.Fatal(err)
	}
	before := "" // the incarnation of the existing row
	if row, err := c.Client.Agent.Query().Where(entagent.Name(n.name)).Only(c.System(t)); err == nil {
		before = row.Incarnation
	}
	n.stop = c.runAgent(t, n, token, managers...)
	managertest.Eventually(t, "agent "+n.name+" joins", func() bool {
		a, err := c.Client.Agent.Query().Where(entagent.Name(n.name), entagent.StatusEQ(entagent.StatusAlive)).WithDevices().Only(c.System(t))
		return err == nil && a.Incarnation != before && len(a.Edges.Devices) > 1
	})
}

// runAgent runs the agent of a machine until stop or the end of the test.
func (c *cluster) runAgent(t *testing.T, n *node, token string, managers ...*managertest.Manager) (stop func()) {
	t.Helper()
	level := slog.LevelError
	if os.Getenv("BERTH_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	n.metrics = opsserver.NewRegistry("test", "agent")
	cfg := agent.Config{
		Registry: n.metrics, Version: "test-agent", Name: n.name, Dir: n.dir, JoinToken: token, CAFingerprint: c.m.Fingerprint(), RunnerPath: filepath.Join(n.dir, "runner"),
		Runtime: fake.New(n.host, n.name), Network: n.wires, Plugins: n.plugins, Sysfs: n.sysfs, Volumes: n.volumes, ScopeMounts: n.scopes, KeepSessions: true, StatsInterval: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}
	if c.log != nil {
		cfg.Logger = c.log
	}
	// These agents run nothing, so that it does not matter how full this machine is.
	cfg.Conditions = condition.Limits{DiskPercent: 1e-9, DiskBytes: 1, InodePercent: 1e-9, MemoryBytes: 1}
	for _, m := range managers {
		cfg.Managers = append(cfg.Managers, m.ClusterAddress())
	}
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.ready = opsserver.Ready(a.Checks())
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

// input is a small session that runs prog.
func input(change managertest.Vars, command ...string) managertest.Vars {
	in := managertest.Vars{"image": "prog:latest", "slots": managertest.Vars{"cpu": "0.05", "mem": "16m"}}
	if len(command) > 0 {
		in["command"] = append([]string{"/bin/prog"}, command...)
	}
	for k, v := range change {
		in[k] = v
	}
	return in
}

const createSession = `mutation($in: CreateSessionInput!) { createSession(input: $in) { session { id } } }`

func (c *cluster) create(t *testing.T, in managertest.Vars) uuid.UUID {
	t.Helper()
	id, errs := tryCreate(t, c.as, in)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return id
}

func tryCreate(t *testing.T, as *managertest.Client, in managertest.Vars) (uuid.UUID, managertest.Errors) {
	t.Helper()
	var got struct {
		CreateSession struct{ Session struct{ ID uuid.UUID } }
	}
	errs := as.Ask(t, createSession, managertest.Vars{"in": in}, &got)
	return got.CreateSession.Session.ID, errs
}

func (c *cluster) end(t *testing.T, id uuid.UUID, force bool) managertest.Errors {
	t.Helper()
	return c.as.Ask(t, `mutation($id: ID!, $f: Boolean) { terminateSession(input: {id: $id, force: $f}) { session { status } } }`,
		managertest.Vars{"id": id, "f": force}, nil)
}

func (c *cluster) session(t *testing.T, id uuid.UUID) *ent.Session {
	t.Helper()
	return c.Client.Session.GetX(c.System(t), id)
}

// reaches waits for a state, and fails at once in another final state.
func (c *cluster) reaches(t *testing.T, id uuid.UUID, want lifecycle.Status) *ent.Session {
	t.Helper()
	var s *ent.Session
	wait.For(t, func() error {
		if s = c.session(t, id); s.Status == want {
			return nil
		}
		err := fmt.Errorf("session is %s (%s), want %s\n%s", s.Status, s.StatusMessage, want, c.history(t, id))
		if s.Status.Final() {
			t.Fatal(err)
		}
		return err
	})
	return s
}

// over waits for the end, whichever it is.
func (c *cluster) over(t *testing.T, id uuid.UUID) *ent.Session {
	t.Helper()
	managertest.Eventually(t, "session ends", func() bool {
		// Backoff is not waited for.
		c.Client.Session.UpdateOneID(id).ClearRetryAt().ExecX(c.System(t))
		return c.session(t, id).Status.Final()
	})
	return c.session(t, id)
}

func (c *cluster) history(t *testing.T, id uuid.UUID) (text string) {
	t.Helper()
	for _, e := range c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id)).Order(sessionevent.ByAt(), sessionevent.ByID()).AllX(c.System(t)) {
		from, to := lifecycle.Status(""), lifecycle.Status("")
		if e.FromStatus != nil {
			from = *e.FromStatus
		}
		if e.ToStatus != nil {
			to = *e.ToStatus
		}
		text += string(e.Result) + " " + string(from) + "→" + string(to) + " " + e.Code + ": " + e.Message + "\n"
	}
	return text
}

// check checks every invariant that is visible from outside at any time; still means that no
// session should run.
func (c *cluster) check(t *testing.T, still bool) {
	t.Helper()
	ctx := c.System(t)
	// All is read at one moment, because sessions change state during the check.
	moment, err := c.Client.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = moment.Rollback() }()
	// I1: no device has more allocated than its capacity.
	devices := moment.Device.Query().AllX(ctx)
	live := moment.Allocation.Query().AllX(ctx)
	used := map[uuid.UUID]resource.Slots{}
	perSession := map[uuid.UUID]int{}
	for _, a := range live {
		if a.FreedAt != nil {
			continue
		}
		if used[a.DeviceID] == nil {
			used[a.DeviceID] = resource.Slots{}
		}
		used[a.DeviceID][a.Slot] += a.Amount
		perSession[a.SessionID]++
	}
	for _, d := range devices {
		for slot, n := range used[d.ID] {
			if n > d.Capacity[slot] {
				t.Errorf("I1: device %s holds %d of %d %s", d.DeviceID, n, d.Capacity[slot], slot)
			}
		}
	}
	for _, s := range moment.Session.Query().AllX(ctx) {
		// I4: an ended session has no allocations.
		if s.Status.Final() && perSession[s.ID] > 0 {
			t.Errorf("I4: session %s is %s and holds %d allocations", s.Name, s.Status, perSession[s.ID])
		}
		if s.Status.Final() != (s.TerminatedAt != nil) {
			t.Errorf("session %s is %s, terminated at %v", s.Name, s.Status, s.TerminatedAt)
		}
		c.checkHistory(t, s)
		if still && !s.Status.Final() {
			t.Errorf("I3: session %s is still %s", s.Name, s.Status)
		}
	}
	if !still {
		return
	}
	for _, n := range c.nodes { // I4 on the machines
		managertest.Eventually(t, "machine "+n.name+" is clean", func() bool {
			list, err := fake.New(n.host, n.name).Containers(t.Context())
			return err == nil && len(list) == 0 && n.wires.count() == 0
		})
	}
}

// checkHistory is I8: the history is a path of the state machine that ends
// where the session is.
func (c *cluster) checkHistory(t *testing.T, s *ent.Session) {
	t.Helper()
	events := c.Client.SessionEvent.Query().Where(sessionevent.SessionID(s.ID)).Order(sessionevent.ByAt(), sessionevent.ByID()).AllX(c.System(t))
	at := lifecycle.Status("")
	for _, e := range events {
		if e.ToStatus == nil {
			continue
		}
		to := *e.ToStatus
		if at != "" && at != to && !lifecycle.CanMove(at, to) || at == "" && to != lifecycle.Pending {
			t.Errorf("I8: session %s went from %q to %s\n%s", s.Name, at, to, c.history(t, s.ID))
		}
		at = to
	}
	if now := c.session(t, s.ID); now.Version != s.Version {
		return // its state changed during the check
	}
	if at != s.Status {
		t.Errorf("I8: session %s is %s, its history ends with %s", s.Name, s.Status, at)
	}
}

func pulled() runtime.Image { return runtime.Image{Reference: image, Digest: "sha256:1"} }
