// Package door lets people in over SSH to one subsystem, SFTP: no shell, no
// command, no forwarding. It keeps the host key, the handshakes and the limits; who
// may come in, and what they get, its caller says. Package storage/view imports it.
package door

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
)

// Caller is who knocks.
type Caller struct {
	Name string // as they call themselves
	Peer string // address and port
}

// Guest is someone who is in, on one connection.
type Guest interface {
	// User is the same for all connections of one.
	User() string
	// Still returns an error of the class unauthorized when they must go.
	Still(context.Context) error
	// Serve serves the subsystem until the stream ends. What is said stands on the
	// person's terminal, beside the protocol.
	Serve(ctx context.Context, stream io.ReadWriteCloser, say func(words string)) error
}

// Config of a door.
type Config struct {
	Dir string // keeps the host key
	// Password and Key find who shows a secret, or the public half of a key that they
	// has not proved yet to have. An error refuses them; of the class unauthorized
	// when what they show is wrong.
	Password func(context.Context, Caller, string) (Guest, error)
	Key      func(context.Context, Caller, ssh.PublicKey) (Guest, error) // nil = no keys
	Logger   *slog.Logger
}

// Door accepts connections. Make it with New.
type Door struct {
	cfg      Config
	log      *slog.Logger
	host     ssh.Signer
	guard    *guard
	timeouts timeouts
}

// New reads the host key, or makes it.
func New(cfg Config) (*Door, error) {
	host, err := hostKey(filepath.Join(cfg.Dir, "sftp_host_ed25519_key"))
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	return &Door{cfg: cfg, log: cfg.Logger, host: host, guard: newGuard(), timeouts: timeouts{handshake, idle, slow}}, nil
}

// Fingerprint is what people compare before they trust the host.
func (d *Door) Fingerprint() string { return ssh.FingerprintSHA256(d.host.PublicKey()) }

// Serve lets people in until the context ends, which closes the listener, and
// waits until all have gone.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
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
		from := network(c.RemoteAddr())
		if why := d.guard.enter(from, time.Now()); why != "" {
			d.log.Info("SSH connection refused", "from", from, "reason", why)
			// Lines before the protocol's own are allowed (RFC 4253, 4.2); the buffer
			// of a new connection has room for one.
			_, _ = io.WriteString(c, why+"\r\n")
			c.Close()
			continue
		}
		visits.Go(func() { d.visit(ctx, c, from) })
	}
}
