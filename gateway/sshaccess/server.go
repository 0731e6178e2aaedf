// Package sshaccess runs the SSH proxy of a gateway with the accounts, sessions and audit log of the
// cluster. The gateway creates it from its parts.
package sshaccess

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/gateway/sshproxy"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/idle"
)

// Agents returns what opens streams to an agent, by its name.
type Agents interface {
	Streams(agent string) (portstream.Opener, error)
}

// Config of a server.
type Config struct {
	Listener net.Listener
	HostKeys []ssh.Signer // must be the same at every gateway
	Client   *ent.Client
	Auth     *auth.Service
	Idle     *idle.Service
	Audit    *audit.Service
	Agents   Agents
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// Server lets people into sessions over SSH.
type Server struct {
	cfg   Config
	proxy *sshproxy.Proxy
}

// New returns a server that Run starts.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg}
	s.proxy = sshproxy.New(sshproxy.Config{
		HostKeys: cfg.HostKeys, Accounts: s, Metrics: sshproxy.NewMetrics(cfg.Registry), Logger: cfg.Logger,
	})
	return s
}

// Run serves SSH until the context ends.
func (s *Server) Run(ctx context.Context) error { return s.proxy.Serve(ctx, s.cfg.Listener) }

// Key implements sshproxy.Accounts.
func (s *Server) Key(ctx context.Context, c sshproxy.Caller, key ssh.PublicKey) (sshproxy.Person, error) {
	ctx = s.from(ctx, c)
	v, err := s.cfg.Auth.SessionKeyholder(ctx, c.Account, key)
	if err != nil {
		return nil, err
	}
	return s.person(ctx, v), nil
}

// Token implements sshproxy.Accounts.
func (s *Server) Token(ctx context.Context, c sshproxy.Caller, token string) (sshproxy.Person, error) {
	ctx = s.from(ctx, c)
	v, err := s.cfg.Auth.Bearer(ctx, "Bearer "+token)
	if err != nil {
		return nil, err
	}
	return s.person(ctx, v), nil
}

// from adds the client's address to the context, for the lists of allowed networks and the audit
// log.
func (s *Server) from(ctx context.Context, c sshproxy.Caller) context.Context {
	ctx = s.cfg.Auth.From(ctx, c.Peer)
	if a := auth.AddressFrom(ctx); a.IsValid() {
		ctx = audit.From(ctx, fmt.Sprint(a))
	}
	return ctx
}
