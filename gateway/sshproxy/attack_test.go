package sshproxy

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshmux"
	"github.com/berthhq/berth/internal/sshserver"
)

func TestLogins(t *testing.T) {
	w := newWorld(t)
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	stranger, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		auth ssh.AuthMethod
		in   bool
	}{
		"key":               {ssh.PublicKeys(w.signer), true},
		"second key":        {ssh.PublicKeys(stranger, w.signer), true},
		"token":             {ssh.Password("secret"), true},
		"unknown key":       {ssh.PublicKeys(stranger), false},
		"wrong token":       {ssh.Password("guess"), false},
		"no password":       {ssh.Password(""), false},
		"stolen public key": {ssh.PublicKeys(forged{w.signer.PublicKey(), stranger}), false},
	} {
		if _, err := w.dial("train", c.auth); (err == nil) != c.in {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.dial("train", ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil })); err == nil {
		t.Error("logged in without a key or token")
	}
	w.mu.Lock()
	w.barred = errTwice
	w.mu.Unlock()
	var banner string
	_, err = ssh.Dial("tcp", w.address, &ssh.ClientConfig{User: "train", Auth: []ssh.AuthMethod{ssh.PublicKeys(w.signer)},
		HostKeyCallback: ssh.FixedHostKey(w.proxy.cfg.HostKeys[0].PublicKey()), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, BannerCallback: func(m string) error { banner += m; return nil }})
	if err == nil || !strings.Contains(banner, "EMAIL+SESSION") {
		t.Errorf("a key of two accounts: %v, the client sees %q", err, banner)
	}
}

// forged has the public key of another signer.
type forged struct {
	public ssh.PublicKey
	ssh.Signer
}

func (f forged) PublicKey() ssh.PublicKey { return f.public }

// Failed logins are limited per address. After too many, a correct token is rejected as well.
func TestGuessesAreLimited(t *testing.T) {
	w := newWorld(t)
	for range sshserver.MaxWrong {
		if _, err := w.dial("train", ssh.Password("guess")); err == nil {
			t.Fatal("logged in with a guess")
		}
	}
	if _, err := w.dial("train", ssh.Password("secret")); err == nil {
		t.Error("a token is accepted after too many guesses")
	}
}

// A program in the container that takes over the connection of the runner cannot reach the client's
// agent, display, host keys or files.
func TestHostileKernel(t *testing.T) {
	w := newWorld(t)
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	refusals := make(chan error, 10)
	w.kernel = func(context.Context) (io.ReadWriteCloser, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0") // both sides write first, so it has buffers
		if err != nil {
			return nil, err
		}
		go func() {
			defer l.Close()
			there, err := l.Accept()
			if err != nil {
				return
			}
			conn, err := sshmux.Server(there)
			if err != nil {
				return
			}
			go sshmux.Discard(conn.Requests)
			n := <-conn.Channels
			ch, asked, err := n.Accept()
			if err != nil {
				return
			}
			_ = (<-asked).Reply(true, nil) // the client's exec, before the channel is closed
			go sshmux.Discard(asked)
			_, _, _ = conn.SendRequest("hostkeys-00@openssh.com", false, ssh.Marshal(struct{ Key string }{string(signer.PublicKey().Marshal())}))
			_, _ = ch.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{"rm -rf ~"}))
			for _, kind := range []string{"auth-agent@openssh.com", "x11", "session", "direct-tcpip", "tun@openssh.com"} {
				_, _, err := conn.OpenChannel(kind, nil)
				refusals <- err
			}
			_, _ = io.WriteString(ch, "done")
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{5}))
			ch.Close()
		}()
		return net.Dial("tcp", l.Addr().String())
	}
	raw, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, w.address, &ssh.ClientConfig{User: "train", Auth: []ssh.AuthMethod{ssh.PublicKeys(w.signer)},
		HostKeyCallback: ssh.FixedHostKey(w.proxy.cfg.HostKeys[0].PublicKey()), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for r := range requests {
			if r.Type != "keepalive@openssh.com" {
				t.Errorf("the client gets the request %s", r.Type)
			}
			_ = r.Reply(false, nil)
		}
	}()
	go func() {
		for n := range channels {
			t.Errorf("the client gets a channel %s", n.ChannelType())
			_ = n.Reject(ssh.Prohibited, "")
		}
	}()
	ch, asked, err := conn.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	status := make(chan struct{})
	go func() {
		for r := range asked {
			if r.Type != "exit-status" {
				t.Errorf("the client's channel gets the request %s", r.Type)
			}
		}
		close(status)
	}()
	if ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{"x"})); !ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	if all, err := io.ReadAll(ch); string(all) != "done" || err != nil {
		t.Errorf("%q %v", all, err)
	}
	<-status
	for range 5 {
		var refused *ssh.OpenChannelError
		select {
		case err := <-refusals:
			if !errors.As(err, &refused) {
				t.Errorf("a channel of the kernel: %v", err)
			}
		default:
			t.Error("a channel of the kernel was not answered")
		}
	}
}

// The connections of a person and the channels of a connection are limited.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	c := w.must("train")
	var last net.Conn
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	for i := range maxChannels {
		if last, err = c.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatalf("channel %d: %v", i+1, err)
		}
	}
	var refused *ssh.OpenChannelError
	if _, err := c.NewSession(); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("one more channel: %v", err)
	}
	last.Close()
	w.kernel = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("none") }
	for range limits.PerUser - 1 {
		go w.dial("train")
	}
	for range limits.PerUser {
		if c, err := w.dial("train"); err == nil {
			s, err := c.NewSession()
			if err != nil {
				continue
			}
			var said strings.Builder
			s.Stderr = &said
			if _ = s.Run("true"); strings.Contains(said.String(), "100 SSH connections") {
				return
			}
		}
	}
	t.Error("a person has more connections than the limit")
}
