package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"github.com/berthhq/berth/internal/cluster/clusterpb"
)

// joinService is the only service for nodes without a tunnel.
type joinService struct {
	clusterpb.UnimplementedClusterServer
	hub *Hub
}

func newJoinServer() *grpc.Server {
	return grpc.NewServer(
		grpc.Creds(doneCreds{}),
		grpc.MaxRecvMsgSize(64<<10),
		grpc.MaxConcurrentStreams(4),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: 10 * time.Second, MaxConnectionAge: 30 * time.Second,
			MaxConnectionAgeGrace: 5 * time.Second, Time: 5 * time.Second, Timeout: 5 * time.Second,
		}),
	)
}

// Join issues a certificate for a one-time token. It validates the request before it redeems
// the token.
func (s *joinService) Join(ctx context.Context, req *clusterpb.JoinRequest) (*clusterpb.JoinResponse, error) {
	h := s.hub
	cert, err := s.admit(ctx, req)
	if err != nil {
		return nil, h.refusal("join", req.Role, req.Name, err)
	}
	h.log.Info("node joined", "role", req.Role, "name", req.Name)
	return &clusterpb.JoinResponse{
		Certificate: cert, Ca: h.cfg.CA.cert.Raw, Managers: h.cfg.Managers(),
	}, nil
}

func (s *joinService) admit(ctx context.Context, req *clusterpb.JoinRequest) ([]byte, error) {
	h := s.hub
	if _, live := h.Peer(req.Role, req.Name); live {
		return nil, fmt.Errorf("%s %s is connected: %w", req.Role, req.Name, errdefs.ErrAlreadyExists)
	}
	cert, err := h.cfg.CA.Issue(req.Csr, req.Role, req.Name, EnrolmentOf(req.Token), NodeLife)
	if err != nil {
		return nil, err
	}
	return cert, h.cfg.Join(ctx, req.Token, req.Role, req.Name)
}

// Renew issues a new certificate for a valid one.
func (s *joinService) Renew(ctx context.Context, req *clusterpb.RenewRequest) (*clusterpb.RenewResponse, error) {
	h := s.hub
	state := shownState(ctx)
	if len(state.PeerCertificates) == 0 {
		return nil, errgrpc.ToGRPC(fmt.Errorf("renew needs a certificate: %w", errdefs.ErrUnauthenticated))
	}
	old := state.PeerCertificates[0]
	role, name, err := identityOf(old)
	if err == nil && h.cfg.Admit != nil {
		err = h.cfg.Admit(ctx, role, name, enrolmentOf(old))
	}
	var cert []byte
	if err == nil {
		cert, err = h.cfg.CA.Issue(req.Csr, role, name, enrolmentOf(old), NodeLife)
	}
	if err != nil {
		return nil, h.refusal("renew", role, name, err)
	}
	return &clusterpb.RenewResponse{Certificate: cert}, nil
}

// refusal returns the error that the node receives.
func (h *Hub) refusal(what, role, name string, err error) error {
	h.log.Warn("refused a node", "call", what, "role", role, "name", name, "error", err)
	for _, is := range []func(error) bool{
		errdefs.IsPermissionDenied, errdefs.IsAlreadyExists, errdefs.IsInvalidArgument, errdefs.IsUnavailable,
	} {
		if is(err) {
			return errgrpc.ToGRPC(err)
		}
	}
	return errgrpc.ToGRPC(fmt.Errorf("%s: internal error: %w", what, errdefs.ErrInternal))
}

// doneCreds are credentials for connections whose handshake is complete; handlers find the
// result in the peer.
type doneCreds struct{}

func (doneCreds) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	s, ok := c.(*strangerConn)
	if !ok {
		return nil, nil, errors.New("connection without a handshake")
	}
	return c, credentials.TLSInfo{
		State:          s.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

func (doneCreds) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("server credentials only")
}
func (doneCreds) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}
func (c doneCreds) Clone() credentials.TransportCredentials { return c }
func (doneCreds) OverrideServerName(string) error           { return nil }

func shownState(ctx context.Context) tls.ConnectionState {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			return info.State
		}
	}
	return tls.ConnectionState{}
}

// strangerConn reports when it is closed.
type strangerConn struct {
	*tls.Conn
	closed func()
}

func (c *strangerConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// connListener passes accepted connections to a server.
type connListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  context.Context
	stop  context.CancelFunc
}

func newConnListener(addr net.Addr) *connListener {
	l := &connListener{addr: addr, conns: make(chan net.Conn)}
	l.done, l.stop = context.WithCancel(context.Background())
	return l
}

func (l *connListener) hand(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done.Done():
		_ = c.Close()
	}
}

func (l *connListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done.Done():
		return nil, net.ErrClosed
	}
}

func (l *connListener) Close() error   { l.stop(); return nil }
func (l *connListener) Addr() net.Addr { return l.addr }
