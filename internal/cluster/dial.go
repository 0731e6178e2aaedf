package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/hashicorp/yamux"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/clock"
)

// After a tunnel that lasted this long, the next attempt follows at once.
const goodTunnel = 5 * time.Second

// askAfter is the length of a pause after which a node requests the reason, because a manager that
// rejects a node only closes the tunnel.
const askAfter = 4 * firstWait

// askWhy finds out whether a manager rejects the node, from the answer to a renewal of its
// certificate. A node with a new join token then joins with it; other nodes log the reason.
func (n *Node) askWhy(ctx context.Context, addr string) {
	err := n.renew(ctx, addr)
	if !errdefs.IsPermissionDenied(err) {
		return
	}
	if n.cfg.JoinToken != "" && n.cfg.CAFingerprint != "" && enrolmentOf(n.id.Load().cert) != EnrolmentOf(n.cfg.JoinToken) {
		if err = n.join(ctx, addr); err == nil {
			return
		}
	}
	n.log.Error("refused: ask for a new join token", "error", err)
}

// aliasError reports that an address belongs to a manager with an existing tunnel. Two tunnels
// to one manager would replace each other forever.
type aliasError struct{ until <-chan struct{} }

func (aliasError) Error() string { return "another address of the same manager" }

// keepTunnel serves srv to the manager at addr until ctx ends. It reports whether srv was
// stopped.
func (n *Node) keepTunnel(ctx context.Context, addr string, srv *grpc.Server) bool {
	log := n.log.With("manager", addr)
	retry, waited := newBackoff(), time.Duration(0)
	for {
		begun := time.Now()
		err := n.serveTunnel(ctx, addr, srv)
		if ctx.Err() != nil {
			return false
		}
		if errors.Is(err, grpc.ErrServerStopped) {
			return true
		}
		var alias aliasError
		if errors.As(err, &alias) {
			log.Debug("same manager", "error", err)
			select {
			case <-alias.until:
			case <-ctx.Done():
				return false
			}
		} else {
			log.Warn("tunnel ended", "after", time.Since(begun).Round(time.Millisecond), "error", err)
			if time.Since(begun) < goodTunnel && waited >= askAfter {
				n.askWhy(ctx, addr)
			}
		}
		if time.Since(begun) > goodTunnel {
			retry.Reset()
		}
		waited = retry.NextBackOff()
		if clock.Pause(ctx, waited) != nil {
			return false
		}
	}
}

// serveTunnel opens one tunnel and serves srv on it to its end.
func (n *Node) serveTunnel(ctx context.Context, addr string, srv *grpc.Server) error {
	cfg := n.id.Load().clientTLS(protoTunnel)
	release := func() {}
	defer func() { release() }()
	cfg.VerifyConnection = func(s tls.ConnectionState) (err error) {
		release, err = n.claim(s.PeerCertificates[0].Subject.SerialNumber)
		return err
	}
	conn, err := dialTLS(ctx, addr, cfg)
	if err != nil {
		return err
	}
	mux, err := yamux.Server(join(conn), muxConfig(n.log))
	if err != nil {
		_ = conn.Close()
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = mux.Close() })
	defer stop()
	defer mux.Close()
	leave, err := n.reachable(addr, mux)
	if err != nil {
		return err
	}
	defer leave()
	n.log.Info("tunnel open", "manager", addr)
	calls := n.split(ctx, mux)
	defer calls.Close()
	if err = srv.Serve(calls); err == nil {
		err = grpc.ErrServerStopped
	}
	return err
}

// reachable makes the manager at the other end of a tunnel available for calls.
func (n *Node) reachable(addr string, mux *yamux.Session) (leave func(), err error) {
	client, err := clientOver(addr, func(context.Context) (net.Conn, error) { return mux.Open() })
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients = append(n.clients, client)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.clients = slices.DeleteFunc(n.clients, func(c *grpc.ClientConn) bool { return c == client })
		_ = client.Close()
	}, nil
}

// Clients returns connections to the Services of the managers with a tunnel now.
func (n *Node) Clients() []*grpc.ClientConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.clients)
}

// claim reserves the one tunnel to a manager.
func (n *Node) claim(instance string) (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if until, ok := n.tunnels[instance]; ok {
		return func() {}, fmt.Errorf("%w: %w", aliasError{until}, errdefs.ErrAlreadyExists)
	}
	ended := make(chan struct{})
	n.tunnels[instance] = ended
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.tunnels, instance)
		close(ended)
	}, nil
}
