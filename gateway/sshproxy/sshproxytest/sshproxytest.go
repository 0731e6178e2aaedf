// Package sshproxytest runs SSH gateways that let everybody in, for tests of what is behind them.
package sshproxytest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/gateway/sshproxy"
	"github.com/berthhq/berth/internal/sshserver"
)

// Open starts the SSH server that the user name of a client names, and returns its stdin and stdout.
type Open func(ctx context.Context, t sshproxy.Target) (io.ReadWriteCloser, error)

// Start runs a gateway until the end of the test, and returns its address. Every key and password is
// accepted.
func Start(t testing.TB, open Open) string {
	t.Helper()
	keys, err := sshserver.HostKeys(filepath.Join(t.TempDir(), "host_ed25519_key"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	px := sshproxy.New(sshproxy.Config{
		HostKeys: keys, Accounts: accounts{open}, Metrics: sshproxy.NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- px.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("gateway: %v", err)
		}
	})
	return l.Addr().String()
}

// accounts is also the one person.
type accounts struct{ open Open }

func (a accounts) Key(context.Context, sshproxy.Caller, ssh.PublicKey) (sshproxy.Person, error) {
	return a, nil
}

func (a accounts) Token(context.Context, sshproxy.Caller, string) (sshproxy.Person, error) {
	return a, nil
}

func (a accounts) ID() string { return "everybody" }

func (a accounts) Enter(_ context.Context, t sshproxy.Target) (sshproxy.Entry, error) {
	return entry{a.open, t}, nil
}

type entry struct {
	open   Open
	target sshproxy.Target
}

func (e entry) Open(ctx context.Context) (io.ReadWriteCloser, error) { return e.open(ctx, e.target) }
func (e entry) Check(context.Context) error                          { return nil }
func (e entry) Ended() <-chan struct{}                               { return nil }
func (e entry) Moved()                                               {}
func (e entry) Leave()                                               {}
