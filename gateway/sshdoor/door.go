// Package sshdoor runs the SSH front of a gateway with the accounts, sessions and audit log of the
// cluster. The gateway creates it from its parts.
package sshdoor

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/gateway/sshfront"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/idle"
)

// command starts the SSH server in a container.
var command = []string{"/opt/berth/runner", "sshd"}

// Agents returns the connection to an agent by its name.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
}

// Config of a door.
type Config struct {
	Listener net.Listener
	HostKey  ssh.Signer // the same at every gateway
	Client   *ent.Client
	Auth     *auth.Service
	Idle     *idle.Service
	Audit    *audit.Service
	Agents   Agents
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// Door lets people into sessions over SSH.
type Door struct {
	cfg   Config
	front *sshfront.Front
}

// New returns a door that Run opens.
func New(cfg Config) *Door {
	d := &Door{cfg: cfg}
	d.front = sshfront.New(sshfront.Config{
		HostKey: cfg.HostKey, Accounts: d, Command: command, Metrics: sshfront.NewMetrics(cfg.Registry), Logger: cfg.Logger,
	})
	return d
}

// Run serves SSH until the context ends.
func (d *Door) Run(ctx context.Context) error { return d.front.Serve(ctx, d.cfg.Listener) }

// Key implements sshfront.Accounts.
func (d *Door) Key(ctx context.Context, c sshfront.Caller, key ssh.PublicKey) (sshfront.Person, error) {
	ctx = d.from(ctx, c)
	v, err := d.cfg.Auth.SessionKeyholder(ctx, c.Account, key)
	if err != nil {
		return nil, err
	}
	return d.person(ctx, v), nil
}

// Token implements sshfront.Accounts.
func (d *Door) Token(ctx context.Context, c sshfront.Caller, token string) (sshfront.Person, error) {
	ctx = d.from(ctx, c)
	v, err := d.cfg.Auth.Bearer(ctx, "Bearer "+token)
	if err != nil {
		return nil, err
	}
	return d.person(ctx, v), nil
}

// from adds the client's address, for the lists of allowed networks and the audit log.
func (d *Door) from(ctx context.Context, c sshfront.Caller) context.Context {
	ctx = d.cfg.Auth.From(ctx, c.Peer)
	if a := auth.AddressFrom(ctx); a.IsValid() {
		ctx = audit.From(ctx, fmt.Sprint(a))
	}
	return ctx
}
