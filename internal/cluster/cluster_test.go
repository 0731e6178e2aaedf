package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

const timeout = 2 * time.Minute

// site is a cluster's authority and its tokens, for as many managers as a test
// starts.
type site struct {
	ca *CA

	mu       sync.Mutex
	tokens   map[string]string // token to role
	hidden   bool              // managers do not publish their addresses
	services map[string]*grpc.Server
	admit    func(role, name, serial string) error
}

func newSite(t *testing.T) *site {
	t.Helper()
	ca, err := LoadOrCreateCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &site{ca: ca, tokens: map[string]string{}}
}

func (s *site) token(role string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tok := fmt.Sprintf("token-%d-%s", len(s.tokens), role)
	s.tokens[tok] = role
	return tok
}

func (s *site) join(_ context.Context, token, role, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens[token] != role || role == "" {
		return fmt.Errorf("token is unknown, used or for another role: %w", errdefs.ErrPermissionDenied)
	}
	s.tokens[token] = ""
	return nil
}

// manager is a hub on a real listener.
type manager struct {
	hub   *Hub
	addr  string
	peers chan *Peer // every OnPeer call
	stop  func()     // as a manager that exits
}

func (s *site) manager(t *testing.T, addr string, known ...string) *manager {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{addr: l.Addr().String(), peers: make(chan *Peer, 100)}
	m.hub = NewHub(HubConfig{
		CA: s.ca, Join: s.join,
		Admit: func(_ context.Context, role, name, serial string) error {
			if s.admit == nil {
				return nil
			}
			return s.admit(role, name, serial)
		},
		Managers: func() []string {
			if s.hidden {
				return nil
			}
			return append([]string{m.addr}, known...)
		},
		OnPeer: func(ctx context.Context, p *Peer) {
			m.peers <- p
			<-ctx.Done()
		},
		Services: s.services,
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.hub.Serve(ctx, l) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("hub ended: %v", err)
			}
		case <-time.After(timeout):
			t.Error("hub did not end")
		}
	})
	t.Cleanup(m.stop)
	return m
}

// next waits for the next tunnel and sends a call through it.
func (m *manager) next(t *testing.T) *Peer {
	t.Helper()
	select {
	case p := <-m.peers:
		if err := call(t.Context(), p); err != nil {
			t.Fatalf("call %s %s: %v", p.Role, p.Name, err)
		}
		return p
	case <-time.After(timeout):
		t.Fatal("no tunnel")
		return nil
	}
}

func call(ctx context.Context, p *Peer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := healthpb.NewHealthClient(p.Conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// serve runs a node with a health service until the returned function is
// called, which gives Serve's error.
func serve(t *testing.T, cfg NodeConfig) (*Node, func() error) {
	t.Helper()
	n, err := NewNode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	healthpb.RegisterHealthServer(srv, health.NewServer())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, srv) }()
	stop := sync.OnceValue(func() error {
		cancel()
		defer srv.Stop()
		select {
		case err := <-served:
			return err
		case <-time.After(timeout):
			return errors.New("node did not end")
		}
	})
	t.Cleanup(func() { _ = stop() })
	return n, stop
}

// node is the configuration of a new node with a fresh token.
func (s *site) node(t *testing.T, name string, managers ...string) NodeConfig {
	return NodeConfig{
		Role: RoleAgent, Name: name, Dir: t.TempDir(), Managers: managers,
		JoinToken: s.token(RoleAgent), CAFingerprint: s.ca.Fingerprint(),
	}
}

func waitClosed(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(timeout):
		t.Fatalf("%s: still open", what)
	}
}

func TestJoinIsRefused(t *testing.T) {
	s := newSite(t)
	other := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	used := s.token(RoleAgent)
	if err := s.join(t.Context(), used, RoleAgent, "x"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*NodeConfig)
		want   func(error) bool
	}{
		"used token":        {func(c *NodeConfig) { c.JoinToken = used }, errdefs.IsPermissionDenied},
		"unknown token":     {func(c *NodeConfig) { c.JoinToken = "guess" }, errdefs.IsPermissionDenied},
		"role of the token": {func(c *NodeConfig) { c.Role = RoleStorage }, errdefs.IsPermissionDenied},
		"other cluster":     {func(c *NodeConfig) { c.CAFingerprint = other.ca.Fingerprint() }, errdefs.IsUnauthorized},
		"no fingerprint":    {func(c *NodeConfig) { c.CAFingerprint = "" }, errdefs.IsFailedPrecondition},
		"no token":          {func(c *NodeConfig) { c.JoinToken = "" }, errdefs.IsFailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := s.node(t, "n1", m.addr)
			c.change(&cfg)
			n, err := NewNode(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if err := n.Serve(ctx, grpc.NewServer()); !c.want(err) {
				t.Errorf("error %v is of another class", err)
			}
		})
	}
}

func TestTakenNameIsRefused(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	serve(t, s.node(t, "n1", m.addr))
	m.next(t)
	second := s.node(t, "n1", m.addr)
	n, err := NewNode(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Serve(t.Context(), grpc.NewServer()); !errdefs.IsAlreadyExists(err) {
		t.Fatalf("error %v, want already exists", err)
	}
	if s.tokens[second.JoinToken] == "" {
		t.Error("the token was used up")
	}
}

func TestTunnel(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	cfg := s.node(t, "n1", m.addr)
	_, stop := serve(t, cfg)
	p := m.next(t)
	if p.Role != RoleAgent || p.Name != "n1" || p.CertSerial == "" {
		t.Errorf("peer is %s %q %q", p.Role, p.Name, p.CertSerial)
	}
	if got, ok := m.hub.Peer(RoleAgent, "n1"); !ok || got != p {
		t.Error("hub does not know the peer")
	}
	if err := stop(); err != nil {
		t.Fatalf("node ended: %v", err)
	}
	waitClosed(t, p.Done, "tunnel of a stopped node")

	// The second start needs neither token nor addresses.
	cfg.JoinToken, cfg.CAFingerprint, cfg.Managers = "", "", nil
	serve(t, cfg)
	if again := m.next(t); again.CertSerial != p.CertSerial {
		t.Error("the node has another certificate")
	}

	cfg.Name = "n2"
	if _, err := NewNode(cfg); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("directory of another node: error %v, want failed precondition", err)
	}
}

func TestManagerRestarts(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	serve(t, s.node(t, "n1", m.addr))
	p := m.next(t)
	m.stop()
	waitClosed(t, p.Done, "tunnel of a stopped manager")
	s.manager(t, m.addr).next(t)
}

func TestNodeWaitsForFirstManager(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	serve(t, s.node(t, "n1", addr))
	s.manager(t, addr).next(t)
}

func TestTwoManagers(t *testing.T) {
	s := newSite(t)
	m2 := s.manager(t, "127.0.0.1:0")
	m1 := s.manager(t, "127.0.0.1:0", m2.addr)
	cfg := s.node(t, "n1", m1.addr)
	n, stop := serve(t, cfg)
	m1.next(t)
	m2.next(t) // known from the answer to Join

	m3 := s.manager(t, "127.0.0.1:0")
	n.Learn(m3.addr, "nonsense", m1.addr)
	m3.next(t)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if n, err := NewNode(cfg); err != nil || len(n.addrs()) != 3 {
		t.Errorf("kept managers %q (%v), want three", n.addrs(), err)
	}
}

func TestTwoAddressesOfOneManager(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(m.addr)
	n, _ := serve(t, s.node(t, "n1", m.addr, net.JoinHostPort("localhost", port)))
	p := m.next(t)
	// Both addresses were dialled; one of them waits.
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		n.mu.Lock()
		tunnels := len(n.tunnels)
		n.mu.Unlock()
		if tunnels != 1 || len(m.peers) > 0 {
			t.Fatalf("%d tunnels, %d replacements", tunnels, len(m.peers))
		}
	}
	p.Close()
	m.next(t)
}

func TestNewerTunnelReplacesOlder(t *testing.T) {
	s := newSite(t)
	var mu sync.Mutex
	var running, most int
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	peers := make(chan *Peer, 100)
	hub := NewHub(HubConfig{CA: s.ca, Join: s.join, Managers: func() []string { return nil },
		OnPeer: func(ctx context.Context, p *Peer) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			peers <- p
			<-ctx.Done()
			mu.Lock()
			running--
			mu.Unlock()
		}})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- hub.Serve(ctx, l) }()

	cfg := s.node(t, "n1", l.Addr().String())
	_, stopOld := serve(t, cfg)
	old := <-peers
	_, stopNew := serve(t, cfg) // a second process with the same certificate
	newer := <-peers
	waitClosed(t, old.Done, "replaced tunnel")
	if err := call(t.Context(), newer); err != nil && call(t.Context(), <-peers) != nil {
		t.Errorf("call through the newer tunnel: %v", err)
	}
	_ = stopOld()
	_ = stopNew()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if most != 1 {
		t.Errorf("%d OnPeer calls of one node at a time", most)
	}
}

func TestRemovedNodeIsNotAdmitted(t *testing.T) {
	s := newSite(t)
	s.admit = func(_, name, _ string) error {
		if name == "gone" {
			return fmt.Errorf("removed: %w", errdefs.ErrPermissionDenied)
		}
		return nil
	}
	m := s.manager(t, "127.0.0.1:0")
	gone, log := s.node(t, "gone", m.addr), new(lines)
	gone.Logger = slog.New(slog.NewTextHandler(log, nil))
	serve(t, gone)
	serve(t, s.node(t, "here", m.addr))
	if p := m.next(t); p.Name != "here" {
		t.Errorf("%s was admitted", p.Name)
	}
	if _, ok := m.hub.Peer(RoleAgent, "gone"); ok {
		t.Error("removed node has a tunnel")
	}
	wait.Until(t, "the node logs why it is refused", func() bool { return strings.Contains(log.String(), "refused: ask for a new join token") })
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestSilentNode cuts the wire without closing it.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.hidden = true // the wire is the only way
	m := s.manager(t, "127.0.0.1:0")
	w := testenv.NewWire(t, "tcp", m.addr)
	serve(t, s.node(t, "n1", w.Addr))
	p := m.next(t)
	w.Cut()
	begun := time.Now()
	waitClosed(t, p.Done, "tunnel of a silent node")
	t.Logf("noticed after %v, on a quiet machine within 10 s", time.Since(begun))
}
