package sshd

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshserver"
)

const (
	handshake = 20 * time.Second // time from the first byte to the login
	// idle is how long a connection can be silent; clients with keep-alive
	// (ServerAliveInterval) stay connected. slow is how long a client can delay the read of an
	// answer.
	idle = 15 * time.Minute
	slow = time.Minute
	// checkEvery is how often the rights of connected clients are checked, including idle
	// ones. A revocation takes effect within this time and the time of one request to a
	// manager.
	checkEvery = 4 * time.Second
)

// timeouts of a connection.
type timeouts struct{ handshake, idle, slow time.Duration }

// clientKey is the key of the Client in the permissions of a connection.
type clientKey struct{}

// serveConn serves one connection.
func (d *Server) serveConn(ctx context.Context, raw net.Conn, from string) {
	user := ""
	defer func() { d.guard.Leave(from, user) }()
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	began := time.Now()
	conn := &timedConn{Conn: raw, timeouts: d.timeouts}
	_ = raw.SetDeadline(began.Add(d.timeouts.handshake))
	server, channels, requests, err := ssh.NewServerConn(conn, d.config(ctx, from))
	if err != nil {
		d.log.Debug("SSH handshake", "from", from, "error", err)
		return
	}
	client := server.Permissions.ExtraData[clientKey{}].(Client)
	if !d.guard.AddUser(client.User()) {
		d.log.Info("SSH connection refused", "from", from, "user", client.User(), "reason", "too many connections of the user")
		return
	}
	user = client.User()
	conn.enter()
	ctx, cancel := context.WithCancel(ctx)
	v := &connection{ctx: ctx, client: client, writers: map[ssh.Channel]func(string){}}
	var tasks sync.WaitGroup
	tasks.Go(func() { ssh.DiscardRequests(requests) })
	tasks.Go(func() { v.watch(raw) })
	v.serve(channels)
	cancel()
	server.Close()
	tasks.Wait()
	d.log.Info("SFTP connection ended", "user", user, "from", from, "took", time.Since(began))
}

// config returns the SSH configuration of a connection, with its login methods.
func (d *Server) config(ctx context.Context, from string) *ssh.ServerConfig {
	c := sshserver.Config(d.host)
	c.PasswordCallback = func(who ssh.ConnMetadata, secret []byte) (*ssh.Permissions, error) {
		if d.guard.Blocked(from, who.User(), time.Now()) {
			return nil, fmt.Errorf("too many wrong passwords: %w", errdefs.ErrPermissionDenied)
		}
		g, err := d.cfg.Password(ctx, caller(who), string(secret))
		if errdefs.IsUnauthorized(err) {
			d.guard.Failed(from, who.User(), time.Now())
		} else if err == nil {
			d.guard.LoggedIn(from, who.User())
		}
		return d.permissions(g, err)
	}
	if d.cfg.Key != nil {
		c.PublicKeyCallback = func(who ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			g, err := d.cfg.Key(ctx, caller(who), key)
			return d.permissions(g, err)
		}
	}
	return c
}

func caller(who ssh.ConnMetadata) Caller { return Caller{who.User(), who.RemoteAddr().String()} }

func (d *Server) permissions(g Client, err error) (*ssh.Permissions, error) {
	switch {
	case err == nil:
		return &ssh.Permissions{ExtraData: map[any]any{clientKey{}: g}}, nil
	case errdefs.IsUnauthorized(err):
		return nil, err
	}
	d.log.Warn("SSH login", "error", err)
	return nil, &ssh.BannerError{Err: err, Message: "Berth cannot check your login right now: try again later\r\n"}
}

// connection is a connection of an authenticated client.
type connection struct {
	ctx    context.Context
	client Client

	mu      sync.Mutex
	writers map[ssh.Channel]func(string) // by channel that is served
}

// watch closes the connection when the client loses its access.
func (v *connection) watch(raw net.Conn) {
	ticks := time.NewTicker(checkEvery)
	defer ticks.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-ticks.C:
		}
		if err := v.client.Check(v.ctx); errdefs.IsUnauthorized(err) {
			// The write of the message can block, so the connection closes after a second at
			// the latest.
			defer time.AfterFunc(time.Second, func() { raw.Close() }).Stop()
			v.mu.Lock()
			for _, writeLine := range v.writers {
				writeLine("berth: your access has ended: " + err.Error())
			}
			v.mu.Unlock()
			raw.Close()
			return
		}
	}
}

const alone = "this server offers SFTP only: no shell, no command, no forwarding"

// serve serves channels until the connection ends.
func (v *connection) serve(channels <-chan ssh.NewChannel) {
	var open atomic.Int32
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for c := range channels {
		switch {
		case c.ChannelType() != "session":
			_ = c.Reject(ssh.Prohibited, alone)
			continue
		case open.Load() >= maxChannels:
			_ = c.Reject(ssh.ResourceShortage, fmt.Sprintf("a connection has at most %d channels", maxChannels))
			continue
		}
		ch, requests, err := c.Accept()
		if err != nil {
			continue // the connection is closed
		}
		open.Add(1)
		sessions.Go(func() {
			defer open.Add(-1)
			defer ch.Close()
			v.session(ch, requests)
		})
	}
}

// session handles the requests of a channel until it starts the subsystem or is refused.
func (v *connection) session(ch ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "subsystem":
			var q struct{ Name string }
			if ssh.Unmarshal(r.Payload, &q) != nil || q.Name != "sftp" {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			go ssh.DiscardRequests(requests) // ends with the channel
			v.subsystem(ch)
			return
		case "shell", "exec":
			_ = r.Reply(true, nil)
			_, _ = io.WriteString(ch.Stderr(), "berth: "+alone+"\r\n")
			exit(ch, 1)
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

// maxLines limits the lines that one channel gets outside of the protocol. A client that does not
// read them has space for them in its window.
const maxLines = 20

func (v *connection) subsystem(ch ssh.Channel) {
	// Package ssh has one buffer for stderr, so writes to it take turns.
	var mu sync.Mutex
	lines := 0
	writeLine := func(words string) {
		mu.Lock()
		defer mu.Unlock()
		if lines++; lines <= maxLines {
			_, _ = io.WriteString(ch.Stderr(), words+"\r\n")
		}
	}
	v.mu.Lock()
	v.writers[ch] = writeLine
	v.mu.Unlock()
	err := v.client.Serve(v.ctx, ch, writeLine)
	v.mu.Lock()
	delete(v.writers, ch)
	v.mu.Unlock()
	if err != nil {
		exit(ch, 1)
		return
	}
	exit(ch, 0)
}

func exit(ch ssh.Channel, status uint32) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}

// timedConn sets a deadline for every read and write after the login. Before the login, the
// deadline of the handshake applies.
type timedConn struct {
	net.Conn
	timeouts
	in atomic.Bool
}

// enter replaces the deadline of the handshake, also for a read that is already waiting.
func (p *timedConn) enter() {
	p.in.Store(true)
	_ = p.SetWriteDeadline(time.Time{})
	_ = p.SetReadDeadline(time.Now().Add(p.idle))
}

func (p *timedConn) Read(b []byte) (int, error) {
	if p.in.Load() {
		_ = p.SetReadDeadline(time.Now().Add(p.idle))
	}
	return p.Conn.Read(b)
}

func (p *timedConn) Write(b []byte) (int, error) {
	if p.in.Load() {
		_ = p.SetWriteDeadline(time.Now().Add(p.slow))
	}
	return p.Conn.Write(b)
}
