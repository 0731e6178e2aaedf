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
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshmux"
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
	Runner string   // path of the berth-runner program, which provides scp
	Env    []string // of every process, nil for the environment of this process
}

// Login is what clients need that come over a network.
type Login struct {
	HostKey ssh.Signer
	// Client is the only key with which clients can log in, as any user. nil does not ask for a login.
	Client ssh.PublicKey
	Time   time.Duration // until a client has logged in; 0 = no limit
}

// Serve serves the channels on a stream of the platform until it or the context ends. Commands
// without a terminal can outlive it, as with every SSH server.
func Serve(ctx context.Context, stream io.ReadWriteCloser, cfg Config) error {
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	mux, err := sshmux.Server(stream)
	if err != nil {
		return fmt.Errorf("SSH channels: %w", err)
	}
	c := newConnection(muxed{mux}, cfg)
	c.client, c.connection = "UNKNOWN 65535 65535", "UNKNOWN 65535 UNKNOWN 65535" // as OpenSSH on a pipe
	c.serve(convert(mux.Channels, func(n *sshmux.NewChannel) newChannel { return muxedChannel{n} }), mux.Requests)
	return nil
}

// ServeNetwork serves a connection of a network like Serve.
func ServeNetwork(ctx context.Context, conn net.Conn, login Login, cfg Config) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if login.Time > 0 {
		if err := conn.SetDeadline(time.Now().Add(login.Time)); err != nil {
			return fmt.Errorf("SSH handshake: %w", err)
		}
	}
	server, channels, requests, err := ssh.NewServerConn(conn, serverConfig(login))
	if err != nil {
		return fmt.Errorf("SSH handshake: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		server.Close()
		return fmt.Errorf("SSH handshake: %w", err)
	}
	c := newConnection(encrypted{server}, cfg)
	c.client, c.connection = endpoints(server)
	c.serve(convert(channels, func(n ssh.NewChannel) newChannel { return encryptedChannel{n} }), convert(requests, request))
	return nil
}

func newConnection(link link, cfg Config) *connection {
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	return &connection{
		link: link, account: accountOf(cfg.Env), runner: cfg.Runner,
		listeners: map[string]*listener{}, scratch: &scratch{}, over: make(chan struct{}),
	}
}

// serve serves a connection until its channels end.
func (c *connection) serve(channels <-chan newChannel, requests <-chan *sshmux.Request) {
	// If an ancestor ignores SIGHUP, as under nohup, commands would ignore the end of their connection.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	var tasks sync.WaitGroup
	tasks.Go(func() { c.globalRequests(requests) })
	for ch := range channels {
		tasks.Go(func() { c.open(ch) })
	}
	c.close()
	tasks.Wait()
}

// serverConfig prefers the fastest cipher: the stream of the platform is encrypted below SSH as
// well, and the network of a session is private.
func serverConfig(cfg Login) *ssh.ServerConfig {
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

// connection is one SSH connection.
type connection struct {
	link               link
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
func (c *connection) open(ch newChannel) {
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
	c.link.Close()
}

// globalRequests answers requests that belong to no channel.
func (c *connection) globalRequests(requests <-chan *sshmux.Request) {
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
