// Package sshd is the SSH server inside a container. The runner serves it on its stdin and stdout,
// as the container's user and in the container's namespaces, so a client has exactly the files,
// network and limits of a process of the container. Clients of that stream are not authenticated,
// because only the platform can open it; the gateway authenticates people. Clients that come over
// the network of a session log in with the session's key. The server needs nothing from the image:
// SFTP and forwards work without a shell and without a libc.
package sshd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Limits of one connection. OpenSSH limits only sessions, to 10. Editors open dozens of connections
// to ports, and mpirun dozens of commands.
const (
	maxChannels    = 1000
	maxSessions    = 200
	maxForwards    = 200       // ports and sockets that the server listens on
	maxEnvironment = 256 << 10 // bytes of the variables that one session sends
	maxVariables   = 1000
	dialTimeout    = 15 * time.Second
)

// Config of a server.
type Config struct {
	HostKey ssh.Signer // nil generates one, for a client that authenticates the stream instead
	Runner  string     // path of the berth-runner program, which provides scp
	Env     []string   // of every process, nil for the environment of this process
	// Client is the only key that clients can log in with, as any user. With nil, clients need no
	// login.
	Client ssh.PublicKey
	// LoginTime limits the time until a client has logged in, on streams with deadlines; 0 = no
	// limit.
	LoginTime time.Duration
}

// Serve serves one connection until it or the context ends. Commands without a terminal can
// outlive it, as with every SSH server.
func Serve(ctx context.Context, stream io.ReadWriteCloser, cfg Config) error {
	if cfg.HostKey == nil {
		key, err := randomKey()
		if err != nil {
			return err
		}
		cfg.HostKey = key
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	conn := netConn(stream)
	if cfg.LoginTime > 0 {
		if err := conn.SetDeadline(time.Now().Add(cfg.LoginTime)); err != nil {
			return fmt.Errorf("SSH handshake: %w", err)
		}
	}
	server, channels, requests, err := ssh.NewServerConn(conn, serverConfig(cfg))
	if err != nil {
		return fmt.Errorf("SSH handshake: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		server.Close()
		return fmt.Errorf("SSH handshake: %w", err)
	}
	c := &connection{
		ssh: server, account: accountOf(cfg.Env), runner: cfg.Runner,
		listeners: map[string]*listener{}, scratch: &scratch{}, over: make(chan struct{}),
	}
	c.client, c.connection = endpoints(server)
	var tasks sync.WaitGroup
	tasks.Go(func() { c.globalRequests(requests) })
	for ch := range channels {
		tasks.Go(func() { c.open(ch) })
	}
	c.close()
	tasks.Wait()
	return nil
}

// serverConfig prefers the fastest cipher: the stream of the platform is encrypted below SSH as
// well, and the network of a session is private.
func serverConfig(cfg Config) *ssh.ServerConfig {
	c := &ssh.ServerConfig{NoClientAuth: cfg.Client == nil, ServerVersion: "SSH-2.0-Berth"}
	if cfg.Client != nil {
		c.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), cfg.Client.Marshal()) {
				return nil, errors.New("this is not the key of the session")
			}
			return nil, nil
		}
	}
	c.KeyExchanges = []string{ssh.KeyExchangeCurve25519, ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeECDHP256}
	c.Ciphers = []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES256CTR}
	c.AddHostKey(cfg.HostKey)
	return c
}

func randomKey() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate host key: %w", err)
	}
	return ssh.NewSignerFromKey(private)
}

// connection is one SSH connection.
type connection struct {
	ssh                *ssh.ServerConn
	account            account
	runner             string
	client, connection string // values of SSH_CLIENT and SSH_CONNECTION
	scratch            *scratch
	over               chan struct{} // closed when the connection ends

	mu         sync.Mutex
	closed     bool
	channels   int
	sessions   int
	noSessions bool // the client has sent no-more-sessions@openssh.com
	listeners  map[string]*listener
}

// open serves one channel until it ends.
func (c *connection) open(ch ssh.NewChannel) {
	session := ch.ChannelType() == "session"
	if reason, why := c.enter(session); why != "" {
		_ = ch.Reject(reason, why)
		return
	}
	defer c.leave(session)
	switch ch.ChannelType() {
	case "session":
		c.serveSession(ch)
	case "direct-tcpip":
		c.directTCP(ch)
	case "direct-streamlocal@openssh.com":
		c.directSocket(ch)
	default:
		_ = ch.Reject(ssh.UnknownChannelType, fmt.Sprintf("channels of the type %q are not supported", ch.ChannelType()))
	}
}

// enter counts a channel, or returns the reason why it cannot be opened.
func (c *connection) enter(session bool) (ssh.RejectionReason, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case session && c.noSessions:
		return ssh.Prohibited, "the client has sent no-more-sessions"
	case c.channels >= maxChannels:
		return ssh.ResourceShortage, fmt.Sprintf("a connection has at most %d channels", maxChannels)
	case session && c.sessions >= maxSessions:
		return ssh.ResourceShortage, fmt.Sprintf("a connection has at most %d sessions", maxSessions)
	}
	c.channels++
	if session {
		c.sessions++
	}
	return 0, ""
}

func (c *connection) leave(session bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.channels--
	if session {
		c.sessions--
	}
}

// close removes everything that the connection opened in the container except processes.
func (c *connection) close() {
	close(c.over)
	c.mu.Lock()
	c.closed = true
	all := c.listeners
	c.listeners = map[string]*listener{}
	c.mu.Unlock()
	for _, l := range all {
		l.Close()
	}
	c.scratch.remove()
	c.ssh.Close()
}

// globalRequests answers requests that belong to no channel.
func (c *connection) globalRequests(requests <-chan *ssh.Request) {
	for r := range requests {
		ok, answer := false, []byte(nil)
		switch r.Type {
		case "tcpip-forward":
			ok, answer = c.forwardTCP(r.Payload)
		case "cancel-tcpip-forward":
			ok = c.cancelTCP(r.Payload)
		case "streamlocal-forward@openssh.com":
			ok = c.forwardSocket(r.Payload)
		case "cancel-streamlocal-forward@openssh.com":
			ok = c.cancelSocket(r.Payload)
		case "no-more-sessions@openssh.com":
			c.mu.Lock()
			c.noSessions, ok = true, true
			c.mu.Unlock()
		}
		// All other requests fail, such as keepalive@openssh.com, as in OpenSSH.
		_ = r.Reply(ok, answer)
	}
}

// gone returns a channel that is closed when the connection ends.
func (c *connection) gone() <-chan struct{} { return c.over }

var errClosed = errors.New("the connection has ended")
