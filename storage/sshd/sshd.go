// Package sshd is an SSH server with one subsystem, SFTP: no shell, no command, no forwarding.
// It owns the host key, the handshakes and the limits. Its caller authenticates clients and
// serves their SFTP sessions. Package storage/view imports it.
package sshd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshserver"
)

// limits of the server. rclone opens a dozen connections.
var limits = sshserver.Limits{Connections: 500, Strangers: 64, PerAddress: 64, PerUser: 32}

const maxChannels = 10 // of one connection; the default of OpenSSH

// Caller describes a connection that wants to log in.
type Caller struct {
	Name string // the user name that the client sent
	Peer string // address and port
}

// Client is an authenticated client on one connection.
type Client interface {
	// User returns the id of the user, which all connections of a user share.
	User() string
	// Check returns an error of the class unauthorized if the client has lost its access.
	Check(context.Context) error
	// Serve serves the subsystem until the stream ends. The function say writes a line to the
	// client's terminal, outside of the protocol.
	Serve(ctx context.Context, stream io.ReadWriteCloser, writeLine func(words string)) error
}

// Config of a server.
type Config struct {
	Dir string // directory of the host key
	// Password and Key authenticate a client by a secret, or by a public key whose possession
	// it has yet to prove. An error rejects the client; it is of the class unauthorized if the
	// secret or key is wrong.
	Password func(context.Context, Caller, string) (Client, error)
	Key      func(context.Context, Caller, ssh.PublicKey) (Client, error) // nil: no login by key
	Logger   *slog.Logger
}

// Server accepts connections. New creates one.
type Server struct {
	cfg      Config
	log      *slog.Logger
	host     []ssh.Signer
	guard    *sshserver.Guard
	timeouts timeouts
}

// New reads the host keys, or generates them.
func New(cfg Config) (*Server, error) {
	host, err := sshserver.HostKeys(filepath.Join(cfg.Dir, "sftp_host_ed25519_key"))
	if err != nil {
		return nil, fmt.Errorf("host keys: %w", err)
	}
	return &Server{cfg: cfg, log: cfg.Logger, host: host, guard: sshserver.NewGuard(limits), timeouts: timeouts{handshake, idle, slow}}, nil
}

// Fingerprint returns the fingerprint of the first host key, which users compare before they trust
// the host.
func (d *Server) Fingerprint() string { return ssh.FingerprintSHA256(d.host[0].PublicKey()) }

// Serve accepts connections until the context ends, then closes the listener and waits until
// all connections have ended.
func (d *Server) Serve(ctx context.Context, l net.Listener) error {
	var visits sync.WaitGroup
	defer visits.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { l.Close() })
	d.log.Info("SFTP", "address", l.Addr().String(), "fingerprint", d.Fingerprint())
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			d.log.Warn("accept", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		case err != nil:
			return fmt.Errorf("accept SSH connections: %w", err)
		}
		from := sshserver.Network(c.RemoteAddr())
		if why := d.guard.Enter(from, time.Now()); why != "" {
			d.log.Info("SSH connection refused", "from", from, "reason", why)
			// Lines before the identification string are allowed (RFC 4253, 4.2). The send
			// buffer of a new connection has space for one, so the write does not block.
			_, _ = io.WriteString(c, why+"\r\n")
			c.Close()
			continue
		}
		visits.Go(func() { d.serveConn(ctx, c, from) })
	}
}
