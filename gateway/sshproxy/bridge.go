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
	c.open(n, c.inner, true)
}

// fromKernel opens channels at the client for those that the kernel opens. A program in the
// container can send anything here, so only the forwards that the client requested are passed on.
func (c *connection) fromKernel(channels <-chan ssh.NewChannel) {
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
		c.bridges.Go(func() { c.open(n, c.outer, false) })
	}
}

// open opens the other half of a channel and passes everything on until both have ended.
func (c *connection) open(n ssh.NewChannel, to ssh.Conn, fromClient bool) {
	defer c.leave()
	if c.channels.Add(1) > maxChannels {
		_ = n.Reject(ssh.ResourceShortage, fmt.Sprintf("a connection has at most %d channels", maxChannels))
		return
	}
	defer c.proxy.cfg.Metrics.channel(n.ChannelType())()
	far, farRequests, err := to.OpenChannel(n.ChannelType(), n.ExtraData())
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused):
		_ = n.Reject(refused.Reason, refused.Message)
		return
	case err != nil:
		_ = n.Reject(ssh.ConnectionFailed, c.reason())
		return
	}
	near, nearRequests, err := n.Accept()
	if err != nil {
		far.Close()
		return
	}
	b := &bridge{c: c, client: near, kernel: far, session: n.ChannelType() == "session"}
	if fromClient {
		b.run(nearRequests, farRequests)
		return
	}
	b.client, b.kernel = far, near
	b.run(farRequests, nearRequests)
}

// bridge joins a channel of the client with one of the kernel.
type bridge struct {
	c       *connection
	client  ssh.Channel
	kernel  ssh.Channel
	session bool

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
func (b *bridge) run(fromClient, fromKernel <-chan *ssh.Request) {
	var input, output, errs sync.WaitGroup
	sent := make(chan struct{})
	input.Go(func() {
		b.pump(b.kernel, b.client)
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
		errs.Go(func() { b.pump(b.client.Stderr(), b.kernel.Stderr()) })
	}
	output.Go(func() {
		b.pump(b.client, b.kernel)
		errs.Wait() // closing one end closes both
		b.endOutput(closed)
	})
	b.kernelRequests(fromKernel)
	close(closed)
	output.Wait()
	if b.session && !b.status && !b.hungUp.Load() {
		_, _ = io.WriteString(b.client.Stderr(), "\r\nberth: "+b.c.reason()+"\r\n")
	}
	b.client.Close()
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
		ok, err := b.kernel.SendRequest(r.Type, r.WantReply, r.Payload)
		_ = r.Reply(ok && err == nil, nil)
	}
}

// kernelRequests passes on the requests that the server of a command sends.
func (b *bridge) kernelRequests(requests <-chan *ssh.Request) {
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

// Sizes of the buffer of one direction. Thousands of idle channels must need little memory, and a
// fast channel must fill packets, which have 32 KiB.
const (
	smallBuffer = 512
	largeBuffer = 32 << 10
)

// pump copies one direction of data to its end.
func (b *bridge) pump(to io.Writer, from io.Reader) {
	buf := make([]byte, smallBuffer)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			b.c.entry.Moved()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		switch {
		case n == len(buf) && n < largeBuffer:
			buf = make([]byte, largeBuffer)
		case n < smallBuffer && len(buf) == largeBuffer: // slow again
			buf = make([]byte, smallBuffer)
		}
	}
}
