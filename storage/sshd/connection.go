package door

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
)

const (
	handshake = 20 * time.Second // from the first byte to the login
	// idle is how long a connection may say nothing; a client that keeps it alive
	// (ServerAliveInterval) stays. slow is how long it may take nothing.
	idle = 15 * time.Minute
	slow = time.Minute
	// stillEvery is how often the rights of who is in are looked at, also of who
	// does nothing: what was revoked ends within this and one question.
	stillEvery = 4 * time.Second
)

// timeouts are those of connections.
type timeouts struct{ handshake, idle, slow time.Duration }

// guestKey is where the permissions of a connection keep its guest.
type guestKey struct{}

// visit serves one connection.
func (d *Door) visit(ctx context.Context, raw net.Conn, from string) {
	user := ""
	defer func() { d.guard.leave(from, user) }()
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
	guest := server.Permissions.ExtraData[guestKey{}].(Guest)
	if !d.guard.known(guest.User()) {
		d.log.Info("SSH connection refused", "from", from, "user", guest.User(), "reason", "too many connections of the user")
		return
	}
	user = guest.User()
	conn.enter()
	ctx, cancel := context.WithCancel(ctx)
	v := &visit{ctx: ctx, guest: guest, says: map[ssh.Channel]func(string){}}
	var tasks sync.WaitGroup
	tasks.Go(func() { ssh.DiscardRequests(requests) })
	tasks.Go(func() { v.watch(raw) })
	v.serve(channels)
	cancel()
	server.Close()
	tasks.Wait()
	d.log.Info("SFTP visit", "user", user, "from", from, "took", time.Since(began))
}

// config is how a connection logs in.
func (d *Door) config(ctx context.Context, from string) *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		Config: ssh.Config{
			KeyExchanges: []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384},
			// The client chooses. OpenSSH would take ChaCha20-Poly1305, which in Go costs
			// twice what AES does.
			Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES256CTR},
			MACs:    []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
		},
		PublicKeyAuthAlgorithms: []string{
			ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
			ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
		},
		ServerVersion: "SSH-2.0-Berth", MaxAuthTries: maxTries,
	}
	c.AddHostKey(d.host)
	c.PasswordCallback = func(who ssh.ConnMetadata, secret []byte) (*ssh.Permissions, error) {
		if d.guard.shut(from, who.User(), time.Now()) {
			return nil, fmt.Errorf("too many wrong passwords: %w", errdefs.ErrPermissionDenied)
		}
		g, err := d.cfg.Password(ctx, caller(who), string(secret))
		if errdefs.IsUnauthorized(err) {
			d.guard.guessed(from, who.User(), time.Now())
		} else if err == nil {
			d.guard.welcome(from, who.User())
		}
		return d.admit(g, err)
	}
	if d.cfg.Key != nil {
		c.PublicKeyCallback = func(who ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			g, err := d.cfg.Key(ctx, caller(who), key)
			return d.admit(g, err)
		}
	}
	return c
}

func caller(who ssh.ConnMetadata) Caller { return Caller{who.User(), who.RemoteAddr().String()} }

func (d *Door) admit(g Guest, err error) (*ssh.Permissions, error) {
	switch {
	case err == nil:
		return &ssh.Permissions{ExtraData: map[any]any{guestKey{}: g}}, nil
	case errdefs.IsUnauthorized(err):
		return nil, err
	}
	d.log.Warn("SSH login", "error", err)
	return nil, &ssh.BannerError{Err: err, Message: "Berth cannot tell right now whether you may come in: try again\r\n"}
}

// visit is a connection of a guest.
type visit struct {
	ctx   context.Context
	guest Guest

	mu   sync.Mutex
	says map[ssh.Channel]func(string) // of the channels that are served
}

// watch ends the connection of a guest who may not stay.
func (v *visit) watch(raw net.Conn) {
	ticks := time.NewTicker(stillEvery)
	defer ticks.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-ticks.C:
		}
		if err := v.guest.Still(v.ctx); errdefs.IsUnauthorized(err) {
			// The words may find no room in the connection.
			defer time.AfterFunc(time.Second, func() { raw.Close() }).Stop()
			v.mu.Lock()
			for _, say := range v.says {
				say("berth: your access has ended: " + err.Error())
			}
			v.mu.Unlock()
			raw.Close()
			return
		}
	}
}

const alone = "this is SFTP alone: no shell, no command, no forwarding"

// serve serves channels until the connection ends.
func (v *visit) serve(channels <-chan ssh.NewChannel) {
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
			continue // the connection is gone
		}
		open.Add(1)
		sessions.Go(func() {
			defer open.Add(-1)
			defer ch.Close()
			v.session(ch, requests)
		})
	}
}

// session waits for what a channel is to be.
func (v *visit) session(ch ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "subsystem":
			var q struct{ Name string }
			if ssh.Unmarshal(r.Payload, &q) != nil || q.Name != "sftp" {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			go ssh.DiscardRequests(requests) // it ends with the channel
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

// maxSaid is how many lines one channel is told beside the protocol: a client that
// does not read them has room for these in its window.
const maxSaid = 20

func (v *visit) subsystem(ch ssh.Channel) {
	// Package ssh has one buffer for what is written beside: one at a time.
	var mu sync.Mutex
	said := 0
	say := func(words string) {
		mu.Lock()
		defer mu.Unlock()
		if said++; said <= maxSaid {
			_, _ = io.WriteString(ch.Stderr(), words+"\r\n")
		}
	}
	v.mu.Lock()
	v.says[ch] = say
	v.mu.Unlock()
	err := v.guest.Serve(v.ctx, ch, say)
	v.mu.Lock()
	delete(v.says, ch)
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

// timedConn is a connection that gives every read and write its time once its guest
// is in; until then the handshake's deadline holds.
type timedConn struct {
	net.Conn
	timeouts
	in atomic.Bool
}

// enter ends the time for the handshake, also for the read that waits already.
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
