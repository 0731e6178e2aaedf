package sshproxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/sshmux"
)

// Messages for clients whose connection is closed.
const (
	closed  = "the connection is closed"
	stopped = "the gateway is restarting: connect again"
	lost    = "the connection to the session is lost: it has ended, or its machine cannot be reached"
)

// connection connects a person with a kernel.
type connection struct {
	proxy *Proxy
	outer *ssh.ServerConn
	inner *sshmux.Conn
	entry Entry

	channels   atomic.Int32
	agent, x11 atomic.Bool // the client has requested the forward
	bridges    sync.WaitGroup

	ended chan struct{} // closed when the reason of the end is known
	mu    sync.Mutex
	why   string // the reason of the end
}

// serve serves one TCP connection.
func (px *Proxy) serve(ctx context.Context, raw net.Conn, from string) {
	user := ""
	defer func() { px.guard.Leave(from, user) }()
	defer raw.Close()
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = raw.SetDeadline(began.Add(px.timeouts.login))
	hangUp := context.AfterFunc(ctx, func() { raw.Close() })
	outer, channels, requests, err := ssh.NewServerConn(raw, px.config(ctx, from))
	if err != nil {
		px.log.Debug("SSH handshake", "from", from, "error", err)
		return
	}
	hangUp()
	_ = raw.SetDeadline(time.Time{})
	person := outer.Permissions.ExtraData[personKey{}].(Person)
	if !px.guard.AddUser(person.ID()) {
		px.cfg.Metrics.login("limit")
		px.refuse(ctx, outer, channels, requests, problem.Exhausted("you have %d SSH connections open at this gateway; close some", limits.PerUser))
		return
	}
	user = person.ID()
	px.cfg.Metrics.login("accepted")
	defer px.cfg.Metrics.opened()()
	c := &connection{proxy: px, outer: outer, ended: make(chan struct{})}
	if err := c.enter(ctx, person); err != nil {
		px.refuse(ctx, outer, channels, requests, err)
		return
	}
	defer c.entry.Leave()
	c.run(ctx, channels, requests)
	px.log.Info("SSH connection ended", "user", user, "from", from, "took", time.Since(began))
}

// enter opens the connection to the kernel that the user name selects.
func (c *connection) enter(ctx context.Context, person Person) error {
	start, cancel := context.WithTimeout(ctx, c.proxy.timeouts.start)
	defer cancel()
	_, target := parseTarget(c.outer.User())
	entry, err := person.Enter(start, target)
	if err != nil {
		return err
	}
	stream, err := entry.Open(ctx)
	if err != nil {
		entry.Leave()
		return err
	}
	stop := context.AfterFunc(start, func() { stream.Close() })
	inner, err := sshmux.Client(stream)
	stop()
	if err != nil {
		entry.Leave()
		return problem.Unavailable("the SSH server of the session does not start").Because(err)
	}
	c.entry, c.inner = entry, inner
	c.bridges.Go(func() { c.fromKernel(inner.Channels) })
	// The container controls this connection, so its global requests are not passed on: one of them
	// adds host keys to the files of OpenSSH's clients.
	c.bridges.Go(func() {
		sshmux.Discard(inner.Requests)
		if !c.ending() { // by the gateway or the client
			c.end(c.cause(ctx))
		}
	})
	return nil
}

// run serves both sides until one of them or the gateway ends, or the person loses the permission.
func (c *connection) run(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { c.globalRequests(ctx, requests) })
	loops.Go(func() { c.watch(ctx) })
	for n := range channels {
		c.bridges.Go(func() { c.fromClient(ctx, n) })
	}
	c.end(closed)
	cancel()
	c.bridges.Wait()
	loops.Wait()
}

// watch ends the connection when the gateway stops, the client stops responding, or the person has
// lost the permission.
func (c *connection) watch(ctx context.Context) {
	tick := time.NewTicker(c.proxy.timeouts.keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.end(stopped) // no effect after a normal end
			return
		case <-c.entry.Ended():
			c.end(c.cause(ctx))
			return
		case <-tick.C:
			go c.probe() // ends with the answer or the connection
		}
	}
}

// probe closes the connection of a client that does not respond.
func (c *connection) probe() {
	late := time.AfterFunc(c.proxy.timeouts.keepAlive, func() { c.outer.Close() })
	defer late.Stop()
	_, _, _ = c.outer.SendRequest("keepalive@openssh.com", true, nil)
}

// cause returns the reason why a connection to a kernel ended or must end.
func (c *connection) cause(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, c.proxy.timeouts.grace/2)
	defer cancel()
	if err := c.entry.Check(ctx); err != nil && ctx.Err() == nil {
		return "your access has ended: " + message(err)
	}
	return lost
}

// end ends the connection to the kernel. Every bridge then sends the reason to the client and
// closes its channel. After a short time, the connection is closed in any case.
func (c *connection) end(why string) {
	c.mu.Lock()
	first := c.why == ""
	if first {
		c.why = why
	}
	c.mu.Unlock()
	if !first {
		return
	}
	close(c.ended)
	c.inner.Close()
	time.AfterFunc(c.proxy.timeouts.grace, func() { c.outer.Close() })
	if c.channels.Load() == 0 {
		c.outer.Close()
	}
}

// leave counts the end of a channel. At the end of a connection, the last channel closes it.
func (c *connection) leave() {
	if c.channels.Add(-1) == 0 && c.ending() {
		c.outer.Close()
	}
}

// ending reports whether the end of the connection has begun.
func (c *connection) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why != ""
}

// reason returns why the connection to the kernel has ended. It waits briefly for the reason.
func (c *connection) reason() string {
	select {
	case <-c.ended:
	case <-time.After(c.proxy.timeouts.grace):
		return lost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// passed are the global requests of clients that the kernel's server answers.
var passed = map[string]bool{
	"tcpip-forward": true, "cancel-tcpip-forward": true, "no-more-sessions@openssh.com": true,
	"streamlocal-forward@openssh.com": true, "cancel-streamlocal-forward@openssh.com": true,
}

// globalRequests passes some requests of the client on. All others fail, such as keep-alives, as in
// OpenSSH's server.
func (c *connection) globalRequests(ctx context.Context, requests <-chan *ssh.Request) {
	for r := range requests {
		if !passed[r.Type] || c.check(ctx) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		ok, answer, err := c.inner.SendRequest(r.Type, r.WantReply, r.Payload)
		_ = r.Reply(ok && err == nil, answer)
	}
}

// check returns an error if the person can no longer enter the kernel.
func (c *connection) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.proxy.timeouts.check)
	defer cancel()
	return c.entry.Check(ctx)
}

// message returns the text of an error for the person.
func message(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the session did not answer in time: try again"
	}
	p, _ := problem.From(err)
	return p.Message
}
