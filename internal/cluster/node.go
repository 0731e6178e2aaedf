// Package cluster is the trust between components and the connections between them: the cluster's
// own certificate authority, the one-time join, and the tunnels that nodes (agents, storage
// proxies) open to every manager and serve gRPC on. Managers import Hub and CA, nodes import Node.
//
// A node listens nowhere. It dials a manager with TLS 1.3 and one of two application protocols:
//
//   - berth-join: the Cluster service. Join needs no certificate, only a
//     one-time token; the node knows the authority by its fingerprint.
//   - berth-tunnel: needs a certificate of this authority. The connection
//     becomes a yamux session on which the manager opens streams and is the
//     gRPC client, or opens streams of bytes with Peer.Open, which reach the
//     node's Streams. Streams that the node opens reach the Services that the
//     manager has for the node's role.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/containerd/errdefs"
	"google.golang.org/grpc"
)

const (
	identityFile = "node.pem"
	managersFile = "managers"
	// maxManagers limits the addresses that a node accepts.
	maxManagers = 64
)

// NodeConfig configures a node.
type NodeConfig struct {
	Role string // RoleAgent or RoleStorage
	Name string // unique in the cluster for the role
	Dir  string // stores the certificate and the managers' addresses
	// Managers are addresses for the first connection; one is enough.
	Managers []string
	// JoinToken and CAFingerprint are required until the node has a certificate.
	JoinToken     string
	CAFingerprint string
	// Streams serves the streams that a manager opens beside its calls, and closes them. Its ctx
	// ends with the tunnel. Nil refuses them.
	Streams func(ctx context.Context, stream net.Conn)
	Logger  *slog.Logger
}

// Node keeps a tunnel to every known manager.
type Node struct {
	cfg NodeConfig
	log *slog.Logger
	id  atomic.Pointer[identity]

	learned chan struct{}

	mu       sync.Mutex
	managers []string
	kept     int                      // number of addresses on disk
	tunnels  map[string]chan struct{} // by manager instance; closed with the tunnel
	clients  []*grpc.ClientConn       // one per tunnel
}

// NewNode reads the state in the directory. Serve starts the node.
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

// Learn adds addresses of managers, and stores them for the next start.
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
		n.log.Warn("managers not stored", "error", err)
		return
	}
	n.kept = len(n.managers)
}

// add adds new addresses. Addresses are never removed.
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

// Serve joins the cluster if the node has no certificate yet, and then serves srv to every
// known manager until ctx ends or srv is stopped. It does not stop srv. It returns at once if
// the join is rejected.
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

const (
	firstWait = 100 * time.Millisecond
	lastWait  = 10 * time.Second
)

// newBackoff returns growing waits. They are random, so that the nodes of a cluster do not all
// come back at once.
func newBackoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: firstWait, MaxInterval: lastWait, Multiplier: 2, RandomizationFactor: 0.5}
}
