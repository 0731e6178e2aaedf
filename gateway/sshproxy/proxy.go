// Package sshproxy is the SSH server of the gateway. A person connects with any SSH client and the
// name of a session as the user name; the proxy authenticates them, opens a stream to the runner in the
// session's container, and passes channels and requests between the two. So a client gets the
// container's shell, files and network, and the container never sees a credential.
// Its caller provides accounts and sessions, and runs Serve on a listener.
package sshproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshserver"
)

// Caller describes a connection that wants to log in.
type Caller struct {
	Account string // e-mail address, "" if the client named only a session
	Peer    string // address and port
}

// Accounts authenticates people. An error rejects the client; it is of the class unauthorized if
// the key or token is wrong.
type Accounts interface {
	// Key returns the person of a public key. The client has not yet proved that it has the private
	// key, so the call must not record a login.
	Key(ctx context.Context, c Caller, key ssh.PublicKey) (Person, error)
	// Token returns the person of an access token.
	Token(ctx context.Context, c Caller, token string) (Person, error)
}

// Person is someone who has logged in on one connection.
type Person interface {
	// ID identifies the person, for limits.
	ID() string
	// Enter checks that the person can enter a kernel, and records it in the audit log, whether they
	// can or not. The message of an error is shown to the person.
	Enter(ctx context.Context, t Target) (Entry, error)
}

// Entry is the presence of a person in a kernel, during one connection.
type Entry interface {
	// Open starts the runner's SSH server in the kernel and returns its stdin and stdout, which are
	// encrypted on their way. Close ends the server.
	Open(ctx context.Context) (io.ReadWriteCloser, error)
	// Check returns an error if the person can no longer enter the kernel. The proxy calls it for
	// every channel, and after Ended for the reason.
	Check(ctx context.Context) error
	// Ended returns a channel that is closed when the session has ended, or the person may have
	// lost their login or permission.
	Ended() <-chan struct{}
	// Moved records that data has moved, for idle checks.
	Moved()
	// Leave ends the presence.
	Leave()
}

// Limits of the proxy. An editor opens about five connections.
var limits = sshserver.Limits{Connections: 2000, Strangers: 128, PerAddress: 500, PerUser: 100}

// timeouts of a connection. A revocation ends it within a second: half of grace to find the reason,
// and grace to send the message.
type timeouts struct {
	login     time.Duration // from the first byte to the login; people paste a token meanwhile
	start     time.Duration // start of the runner's server
	check     time.Duration // check of a permission
	keepAlive time.Duration // between two probes; a client that misses one is gone
	grace     time.Duration // for the last message
}

var usual = timeouts{login: time.Minute, start: 30 * time.Second, check: 10 * time.Second, keepAlive: 30 * time.Second, grace: 500 * time.Millisecond}

// Config of a proxy.
type Config struct {
	HostKeys []ssh.Signer // the same at every gateway of the cluster; people compare the first one
	Accounts Accounts
	Metrics  *Metrics
	Logger   *slog.Logger
}

// Proxy accepts SSH connections. New creates one.
type Proxy struct {
	cfg      Config
	log      *slog.Logger
	guard    *sshserver.Guard
	timeouts timeouts
}

// New returns a proxy.
func New(cfg Config) *Proxy {
	return &Proxy{cfg: cfg, log: cfg.Logger, guard: sshserver.NewGuard(limits), timeouts: usual}
}

// Fingerprint returns the fingerprint of the first host key, which people compare before they trust
// the gateway.
func (px *Proxy) Fingerprint() string { return ssh.FingerprintSHA256(px.cfg.HostKeys[0].PublicKey()) }

// Serve accepts connections until the context ends, then sends each client a message, closes the
// connections and waits for them.
func (px *Proxy) Serve(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { l.Close() })
	px.log.Info("SSH", "address", l.Addr().String(), "fingerprint", px.Fingerprint())
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			px.log.Warn("accept", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		case err != nil:
			return fmt.Errorf("accept SSH connections: %w", err)
		}
		from := sshserver.Network(c.RemoteAddr())
		if why := px.guard.Enter(from, time.Now()); why != "" {
			px.cfg.Metrics.login("limit")
			px.log.Info("SSH connection refused", "from", from, "reason", why)
			// Lines before the identification string are allowed (RFC 4253, 4.2), and fit into the
			// send buffer of a new connection.
			_, _ = io.WriteString(c, why+"\r\n")
			c.Close()
			continue
		}
		open.Go(func() { px.serve(ctx, c, from) })
	}
}
