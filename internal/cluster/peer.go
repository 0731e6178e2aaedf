package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/yamux"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/internal/requestid"
)

// Peer is a connected node, for the life of one tunnel.
type Peer struct {
	Role       string
	Name       string
	CertSerial string           // hex
	Enrolment  string           // identifies the join of its certificate, see EnrolmentOf
	Remote     string           // remote address of the connection
	Conn       *grpc.ClientConn // calls the node's services
	Done       <-chan struct{}  // closed when the tunnel has ended

	mux      *yamux.Session
	finished chan struct{} // closed when OnPeer has returned
}

// Open opens a stream that reaches the node's Streams. It is not gRPC's.
func (p *Peer) Open(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stream, err := p.mux.Open()
	if err != nil {
		return nil, err
	}
	if _, err := stream.Write([]byte{rawStream}); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// Close ends the tunnel. The node will reconnect.
func (p *Peer) Close() { _ = p.mux.Close() }

func (p *Peer) key() peerKey { return peerKey{p.Role, p.Name} }

// tunnel serves a connection with a certificate as a peer until it ends. known is called after
// the node is accepted; hctx limits the time until then.
func (h *Hub) tunnel(ctx, hctx context.Context, conn *tls.Conn, known func()) error {
	p, err := h.newPeer(hctx, conn)
	if err != nil {
		_ = conn.Close()
		return err
	}
	known()
	defer close(p.finished)
	defer h.remove(p)
	defer p.Conn.Close()
	defer p.Close()
	if old := h.add(p); old != nil {
		h.log.Info("tunnel replaced", "role", p.Role, "name", p.Name)
		old.Close()
		<-old.finished
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Done:
			cancel()
		case <-ctx.Done():
			p.Close()
		}
	}()
	if ctx.Err() != nil {
		return nil
	}
	if srv := h.cfg.Services[p.Role]; srv != nil {
		h.running.Go(func() { _ = srv.Serve(p.mux) }) // until the tunnel ends
	}
	log := h.log.With("role", p.Role, "name", p.Name)
	log.Info("node connected", "remote", p.Remote)
	h.cfg.OnPeer(ctx, p)
	<-ctx.Done()
	log.Info("node disconnected")
	return nil
}

func (h *Hub) newPeer(ctx context.Context, conn *tls.Conn) (*Peer, error) {
	cert := conn.ConnectionState().PeerCertificates[0]
	role, name, err := identityOf(cert)
	if err != nil {
		return nil, err
	}
	serial := cert.SerialNumber.Text(16)
	if h.cfg.Admit != nil {
		if err := h.cfg.Admit(ctx, role, name, enrolmentOf(cert)); err != nil {
			return nil, fmt.Errorf("%s %s: %w", role, name, err)
		}
	}
	mux, err := yamux.Client(join(conn), muxConfig(h.log))
	if err != nil {
		return nil, err
	}
	client, err := clientOver(name, func(context.Context) (net.Conn, error) { return mux.Open() })
	if err != nil {
		_ = mux.Close()
		return nil, err
	}
	return &Peer{
		Role: role, Name: name, CertSerial: serial, Enrolment: enrolmentOf(cert), Remote: conn.RemoteAddr().String(),
		Conn: client, Done: mux.CloseChan(), mux: mux, finished: make(chan struct{}),
	}, nil
}

// add registers p as the tunnel of its node and returns the one that it replaces.
func (h *Hub) add(p *Peer) (old *Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old = h.peers[p.key()]
	h.peers[p.key()] = p
	return old
}

func (h *Hub) remove(p *Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peers[p.key()] == p {
		delete(h.peers, p.key())
	}
}

// Application protocols of the cluster listener.
const (
	protoJoin   = "berth-join"
	protoTunnel = "berth-tunnel"
)

const (
	handshakeTimeout = 5 * time.Second
	// An unresponsive peer is detected after at most one interval and one write timeout: 3 s +
	// 5 s, less than the promised 10 s.
	keepAlive    = 3 * time.Second
	writeTimeout = 5 * time.Second
	// streamWindow lets one log or terminal stream fill a 100 ms link at 80 Mbit/s.
	streamWindow = 1 << 20
	// maxMessage is enough for the report of a node with thousands of kernels.
	maxMessage = 16 << 20
)

func muxConfig(log *slog.Logger) *yamux.Config {
	c := yamux.DefaultConfig()
	c.KeepAliveInterval = keepAlive
	c.ConnectionWriteTimeout = writeTimeout
	c.StreamOpenTimeout = 2 * writeTimeout
	c.MaxStreamWindowSize = streamWindow
	c.LogOutput = nil
	c.Logger = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	return c
}

// clientOver returns a gRPC client whose connections come from dial, which encrypts them.
func clientOver(name string, dial func(context.Context) (net.Conn, error)) (*grpc.ClientConn, error) {
	c, err := grpc.NewClient("passthrough:///"+name,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(requestid.UnaryClient), grpc.WithChainStreamInterceptor(requestid.StreamClient),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("grpc client of %s: %w", name, err)
	}
	return c, nil
}
