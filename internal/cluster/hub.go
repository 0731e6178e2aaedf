package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/cluster/clusterpb"
)

// maxStrangers limits the connections that are not authenticated yet.
const maxStrangers = 512

// HubConfig configures the manager's side of the tunnels.
type HubConfig struct {
	CA *CA
	// Join redeems a one-time token. The class of its error reaches the node: permission
	// denied for a token that is unknown, used, expired or of another role, already exists for
	// a name that is taken.
	Join func(ctx context.Context, token, role, name string) error
	// Admit can reject a node with a valid certificate, such as one that was removed from the
	// cluster. enrolment identifies the join of the certificate, see EnrolmentOf. Nil accepts
	// all.
	Admit func(ctx context.Context, role, name, enrolment string) error
	// Managers returns the addresses of all live managers, for a joining node.
	Managers func() []string
	// OnPeer is called for every tunnel. Its ctx ends with the tunnel, and it must then return
	// soon. Calls for one role and name never overlap.
	OnPeer func(ctx context.Context, p *Peer)
	// Services are the gRPC services for nodes, by role. The caller stops them.
	Services map[string]*grpc.Server
	// Metrics are those that managers of the cluster can read here; nil: none.
	Metrics prometheus.Gatherer
	Logger  *slog.Logger
}

// Hub accepts nodes on a manager's cluster listener.
type Hub struct {
	cfg       HubConfig
	log       *slog.Logger
	instance  string
	join      *grpc.Server
	metrics   *grpc.Server
	strangers chan struct{}

	mu    sync.Mutex
	cert  *tls.Certificate
	peers map[peerKey]*Peer

	running sync.WaitGroup
}

type peerKey struct{ role, name string }

// NewHub returns a hub; Serve starts it.
func NewHub(cfg HubConfig) *Hub {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{
		cfg:       cfg,
		log:       cfg.Logger,
		instance:  uuid.NewString(),
		strangers: make(chan struct{}, maxStrangers),
		peers:     map[peerKey]*Peer{},
	}
	h.join = newJoinServer()
	clusterpb.RegisterClusterServer(h.join, &joinService{hub: h})
	h.metrics = newJoinServer()
	ServeMetrics(h.metrics, cfg.Metrics)
	return h
}

// Serve accepts nodes until ctx ends, then closes every tunnel and waits for the OnPeer calls.
// It can be called once.
func (h *Hub) Serve(ctx context.Context, l net.Listener) error {
	if _, err := h.certificate(nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	joins, readers := newConnListener(l.Addr()), newConnListener(l.Addr())
	h.running.Go(func() { _ = h.join.Serve(joins) })
	h.running.Go(func() { _ = h.metrics.Serve(readers) })
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer func() {
		cancel()
		stop()
		_ = l.Close()
		h.join.Stop()
		h.metrics.Stop()
		h.running.Wait()
	}()
	for {
		conn, err := accept(ctx, l)
		if err != nil {
			return err
		}
		if conn == nil {
			return nil
		}
		select {
		case h.strangers <- struct{}{}:
			h.running.Go(func() { h.welcome(ctx, conn, joins, readers) })
		default:
			_ = conn.Close()
			h.log.Warn("too many unknown connections", "remote", conn.RemoteAddr().String())
		}
	}
}

// accept returns the next connection, or nil when ctx has ended. It retries after temporary
// errors, such as a lack of file descriptors.
func accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, nil
		case errors.Is(err, net.ErrClosed):
			return nil, fmt.Errorf("accept nodes: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// welcome authenticates a connection and passes it to the service of its protocol.
func (h *Hub) welcome(ctx context.Context, raw net.Conn, joins, readers *connListener) {
	known := sync.OnceFunc(func() { <-h.strangers })
	conn := tls.Server(&gathered{Conn: raw}, h.tlsConfig())
	hctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(hctx); err != nil {
		_ = raw.Close()
		known()
		h.log.Debug("refused a connection", "remote", raw.RemoteAddr().String(), "error", err)
		return
	}
	switch conn.ConnectionState().NegotiatedProtocol {
	case protoJoin:
		joins.hand(&strangerConn{Conn: conn, closed: known})
		return
	case protoMetrics:
		known()
		readers.hand(&strangerConn{Conn: conn, closed: known})
		return
	}
	defer known()
	if err := h.tunnel(ctx, hctx, conn, known); err != nil {
		h.log.Warn("refused a tunnel", "remote", raw.RemoteAddr().String(), "error", err)
	}
}

// tlsConfig requests a client certificate and verifies it; the protocol decides whether it is
// required.
func (h *Hub) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		ClientAuth:             tls.VerifyClientCertIfGiven,
		ClientCAs:              h.cfg.CA.pool(),
		GetCertificate:         h.certificate,
		NextProtos:             []string{protoTunnel, protoJoin, protoMetrics},
		SessionTicketsDisabled: true, // a resumed session would outlive its certificate
		VerifyConnection: func(s tls.ConnectionState) error {
			if s.NegotiatedProtocol == "" {
				return fmt.Errorf("no application protocol: %w", errdefs.ErrInvalidArgument)
			}
			if s.NegotiatedProtocol == protoMetrics {
				return byManager(s)
			}
			if s.NegotiatedProtocol == protoTunnel && len(s.PeerCertificates) == 0 {
				return fmt.Errorf("tunnel without a certificate: %w", errdefs.ErrUnauthenticated)
			}
			return nil
		},
	}
}

// certificate returns this manager's certificate, and replaces it after half of its validity.
func (h *Hub) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cert != nil && time.Until(h.cert.Leaf.NotAfter) > NodeLife/2 {
		return h.cert, nil
	}
	c, err := h.cfg.CA.server(h.instance)
	if err != nil {
		return nil, err
	}
	h.cert = c
	return c, nil
}

// Peer returns the live tunnel of a node.
func (h *Hub) Peer(role, name string) (*Peer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.peers[peerKey{role, name}]
	return p, ok
}

// Peers returns all live tunnels.
func (h *Hub) Peers() []*Peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.peers))
}
