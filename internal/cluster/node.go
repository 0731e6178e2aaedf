package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc"
)

const (
	identityFile = "node.pem"
	managersFile = "managers"
	// maxManagers bounds what a node can be told.
	maxManagers = 64
)

// NodeConfig is what a node needs to find its cluster.
type NodeConfig struct {
	Role string // RoleAgent or RoleStorage
	Name string // unique in the cluster for the role
	Dir  string // keeps the certificate and the managers' addresses
	// Managers are addresses to start from; one is enough.
	Managers []string
	// JoinToken and CAFingerprint are needed until the node has a certificate.
	JoinToken     string
	CAFingerprint string
	Logger        *slog.Logger
}

// Node keeps a tunnel to every known manager.
type Node struct {
	cfg NodeConfig
	log *slog.Logger
	id  atomic.Pointer[identity]

	learned chan struct{}

	mu       sync.Mutex
	managers []string
	kept     int                      // so many of them are on disk
	tunnels  map[string]chan struct{} // closed with the tunnel; by manager instance
	clients  []*grpc.ClientConn       // one a tunnel
}

// NewNode reads what the directory knows. Serve starts the node.
func NewNode(cfg NodeConfig) (*Node, error) {
	if err := checkIdentity(cfg.Role, cfg.Name); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		cfg: cfg, log: cfg.Logger,
		learned: make(chan struct{}, 1), tunnels: map[string]chan struct{}{},
	}
	id, err := loadIdentity(n.path(identityFile))
	switch {
	case errdefs.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("load certificate: %w", err)
	case !id.is(cfg.Role, cfg.Name):
		return nil, fmt.Errorf("%s belongs to %s, not to %s %s: %w",
			n.path(identityFile), id.cert.Subject, cfg.Role, cfg.Name, errdefs.ErrFailedPrecondition)
	default:
		n.id.Store(id)
	}
	known, err := os.ReadFile(n.path(managersFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("load managers: %w", err)
	}
	n.add(strings.Fields(string(known)))
	n.kept = len(n.managers)
	n.add(cfg.Managers)
	return n, nil
}

func (n *Node) path(name string) string { return filepath.Join(n.cfg.Dir, name) }

// Learn adds addresses of managers, and keeps them for the next start.
func (n *Node) Learn(addrs ...string) {
	n.add(addrs)
	select {
	case n.learned <- struct{}{}:
	default:
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept == len(n.managers) {
		return
	}
	data := []byte(strings.Join(n.managers, "\n") + "\n")
	if err := replaceFile(n.path(managersFile), data); err != nil {
		n.log.Warn("managers not kept", "error", err)
		return
	}
	n.kept = len(n.managers)
}

// add takes in the addresses that are new. They only ever become more.
func (n *Node) add(addrs []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range addrs {
		if _, _, err := net.SplitHostPort(a); err != nil || strings.ContainsAny(a, " \t\r\n") {
			n.log.Warn("not an address of a manager", "address", a)
			continue
		}
		if len(n.managers) < maxManagers && !slices.Contains(n.managers, a) {
			n.managers = append(n.managers, a)
		}
	}
}

func (n *Node) addrs() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.managers)
}

// Serve joins the cluster when the node has no certificate yet, and then
// serves srv to every known manager until ctx ends or srv is stopped. It does
// not stop srv. It returns at once when the join is refused.
func (n *Node) Serve(ctx context.Context, srv *grpc.Server) error {
	if err := n.enroll(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { n.keepFresh(ctx) })
	started := map[string]bool{}
	for {
		for _, addr := range n.addrs() {
			if !started[addr] {
				started[addr] = true
				running.Go(func() {
					if n.keepTunnel(ctx, addr, srv) {
						cancel()
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.learned:
		}
	}
}

// backoff waits a little longer every time: 0.1 s at first, 10 s in the end,
// each within half and all of that, so that a cluster's nodes do not come back
// as one.
type backoff struct{ last time.Duration }

const (
	firstWait = 100 * time.Millisecond
	lastWait  = 10 * time.Second
)

// wait reports whether the time is over; if not, ctx is.
func (b *backoff) wait(ctx context.Context) bool {
	b.last = min(max(2*b.last, firstWait), lastWait)
	t := time.NewTimer(b.last/2 + rand.N(b.last/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (b *backoff) reset() { b.last = 0 }
