package sshproxy

import (
	"context"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

// refuse sends a person who has logged in the reason why they cannot enter the session. SSH can
// send a message only on a channel, so the connection stays open until the client ends it, for a
// short time at most.
func (px *Proxy) refuse(ctx context.Context, outer *ssh.ServerConn, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request, err error) {
	px.log.Info("SSH connection refused", "session", outer.User(), "reason", err)
	defer time.AfterFunc(px.timeouts.start, func() { outer.Close() }).Stop()
	defer context.AfterFunc(ctx, func() { outer.Close() })()
	go ssh.DiscardRequests(requests) // ends with the connection
	why := message(err)
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.Prohibited, why)
			continue
		}
		ch, asked, err := n.Accept()
		if err != nil {
			continue
		}
		go explain(ch, asked, why) // ends with the connection
	}
}

// explain answers the first request for a program with a message and an exit code.
func explain(ch ssh.Channel, requests <-chan *ssh.Request, why string) {
	defer ch.Close()
	for r := range requests {
		program := r.Type == "shell" || r.Type == "exec" || r.Type == "subsystem"
		_ = r.Reply(program || r.Type == "pty-req" || r.Type == "env", nil)
		if program {
			_, _ = io.WriteString(ch.Stderr(), "berth: "+why+"\r\n")
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{1}))
			return
		}
	}
}
