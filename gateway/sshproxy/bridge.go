package sshproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshmux"
)

// maxChannels limits the channels of one connection, in both directions.
const maxChannels = 500

// fromClient opens a channel in the kernel for a channel that the client opens.
func (c *connection) fromClient(ctx context.Context, n ssh.NewChannel) {
	switch n.ChannelType() {
	case "session", "direct-tcpip", "direct-streamlocal@openssh.com":
	default:
		_ = n.Reject(ssh.UnknownChannelType, fmt.Sprintf("channels of the type %q are not supported", n.ChannelType()))
		return
	}
	if err := c.check(ctx); err != nil {
		_ = n.Reject(ssh.Prohibited, message(err))
		return
	}
	c.open(n, func() error {
		kernel, fromKernel, err := c.inner.OpenChannel(n.ChannelType(), n.ExtraData())
		if err != nil {
			return err
		}
		client, fromClient, err := n.Accept()
		if err != nil {
			kernel.Close()
			return nil
		}
		b := &bridge{c: c, client: client, kernel: kernel, session: n.ChannelType() == "session"}
		b.run(fromClient, fromKernel)
		return nil
	})
}

// fromKernel opens channels at the client for those that the kernel opens. A program in the
// container can send anything here, so only the forwards that the client requested are passed on.
func (c *connection) fromKernel(channels <-chan *sshmux.NewChannel) {
	for n := range channels {
		switch n.ChannelType() {
		case "forwarded-tcpip", "forwarded-streamlocal@openssh.com": // clients check the address
		case "auth-agent@openssh.com":
			if !c.agent.Load() {
				_ = n.Reject(ssh.Prohibited, "the client did not forward its agent")
				continue
			}
		case "x11":
			if !c.x11.Load() {
				_ = n.Reject(ssh.Prohibited, "the client did not forward its display")
				continue
			}
		default:
			_ = n.Reject(ssh.UnknownChannelType, fmt.Sprintf("channels of the type %q are not supported", n.ChannelType()))
			continue
		}
		c.bridges.Go(func() { c.open(n, func() error { return c.toClient(n) }) })
	}
}

// toClient joins a channel that the kernel opens with a new one of the client.
func (c *connection) toClient(n *sshmux.NewChannel) error {
	client, fromClient, err := c.outer.OpenChannel(n.ChannelType(), n.ExtraData())
	if err != nil {
		return err
	}
	kernel, fromKernel, err := n.Accept()
	if err != nil {
		client.Close()
		return nil
	}
	b := &bridge{c: c, client: client, kernel: kernel}
	b.run(fromClient, fromKernel)
	return nil
}

// newChannel is a channel that one side opens.
type newChannel interface {
	ChannelType() string
	Reject(reason ssh.RejectionReason, message string) error
}

// open counts a channel while join runs it, and rejects it if join cannot open the other half.
func (c *connection) open(n newChannel, join func() error) {
	defer c.leave()
	if c.channels.Add(1) > maxChannels {
		_ = n.Reject(ssh.ResourceShortage, fmt.Sprintf("a connection has at most %d channels", maxChannels))
		return
	}
	defer c.proxy.cfg.Metrics.channel(n.ChannelType())()
	err := join()
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused):
		_ = n.Reject(refused.Reason, refused.Message)
	case err != nil:
		_ = n.Reject(ssh.ConnectionFailed, c.reason())
	}
}

// bridge joins a channel of the client with one of the kernel.
type bridge struct {
	c       *connection
	client  ssh.Channel
	kernel  *sshmux.Channel
	session bool

	answer sync.Mutex  // held while a request of the client is answered
	hungUp atomic.Bool // the client has closed the channel
	status bool        // the kernel has reported how the command ended
}

// endTime is how long the end of a session's output waits for the end of its channel. If the
// channel ends without a status, a message is sent, which is impossible after the end of the
// output.
//
// sendTime is how long the close of a client's channel waits for data that the client sent.
const (
	endTime  = 200 * time.Millisecond
	sendTime = 2 * time.Second
)

// run passes data and requests on until both channels are closed.
func (b *bridge) run(fromClient <-chan *ssh.Request, fromKernel <-chan *sshmux.Request) {
	var input, output, errs sync.WaitGroup
	sent := make(chan struct{})
	input.Go(func() {
		_, _ = b.kernel.ReadFrom(moving{b.client, b.c.entry})
		_ = b.kernel.CloseWrite()
		close(sent)
	})
	// The requests of a channel end when its side closes it. Then the other channel is closed too,
	// after the earlier data.
	input.Go(func() {
		b.clientRequests(fromClient)
		b.hungUp.Store(true)
		select {
		case <-sent:
		case <-time.After(sendTime): // the program does not read
		}
		b.kernel.Close()
	})
	closed := make(chan struct{})
	if b.session {
		errs.Go(func() { _, _ = io.Copy(moving{b.client.Stderr(), b.c.entry}, b.kernel.Stderr()) })
	}
	output.Go(func() {
		_, _ = b.kernel.WriteTo(moving{b.client, b.c.entry})
		errs.Wait() // closing one end closes both
		b.endOutput(closed)
	})
	b.kernelRequests(fromKernel)
	close(closed)
	output.Wait()
	if b.session && !b.status && !b.hungUp.Load() {
		_, _ = io.WriteString(b.client.Stderr(), "\r\nberth: "+b.c.reason()+"\r\n")
	}
	b.answer.Lock() // the kernel has answered the request that began a short command
	b.client.Close()
	b.answer.Unlock()
	input.Wait()
}

// endOutput passes the end of the output on: at once or, for a session whose channel stays open,
// after endTime.
func (b *bridge) endOutput(closed <-chan struct{}) {
	if b.session {
		select {
		case <-closed:
			return
		case <-time.After(endTime):
		}
	}
	_ = b.client.CloseWrite()
}

// clientRequests passes the requests of the client's channel on.
func (b *bridge) clientRequests(requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "auth-agent-req@openssh.com":
			b.c.agent.Store(true)
		case "x11-req":
			b.c.x11.Store(true)
		}
		b.answer.Lock()
		ok, err := b.kernel.SendRequest(r.Type, r.WantReply, r.Payload)
		_ = r.Reply(ok && err == nil, nil)
		b.answer.Unlock()
	}
}

// kernelRequests passes on the requests that the server of a command sends.
func (b *bridge) kernelRequests(requests <-chan *sshmux.Request) {
	for r := range requests {
		switch r.Type {
		case "exit-status", "exit-signal":
			b.status = true
		case "eow@openssh.com", "xon-xoff":
		default:
			_ = r.Reply(false, nil)
			continue
		}
		ok, err := b.client.SendRequest(r.Type, r.WantReply, r.Payload)
		_ = r.Reply(ok && err == nil, nil)
	}
}

// moving records the data that moves in either direction.
type moving struct {
	io.ReadWriter
	entry Entry
}

// Read implements io.Reader.
func (m moving) Read(p []byte) (int, error) {
	n, err := m.ReadWriter.Read(p)
	if n > 0 {
		m.entry.Moved()
	}
	return n, err
}

// Write implements io.Writer.
func (m moving) Write(p []byte) (int, error) {
	m.entry.Moved()
	return m.ReadWriter.Write(p)
}
