package sshd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshserver"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// long is the longest wait of a test for an expected event.
const long = 2 * time.Minute

// echo is a session that returns the bytes of the client. Its text is both the user name and the
// password.
type echo string

func (v echo) User() string                { return string(v) }
func (v echo) Check(context.Context) error { return nil }
func (v echo) Serve(_ context.Context, s io.ReadWriteCloser, say func(string)) error {
	if v == "talker" {
		var all sync.WaitGroup
		for i := range 2 * maxLines {
			all.Go(func() { say(strings.Repeat(string(rune('a'+i%26)), 1+i*50)) })
		}
		all.Wait()
		return nil
	}
	_, err := io.Copy(s, s)
	return err
}

// house is a server at an address.
type house struct {
	*Server
	address string
	close   func()

	mu    sync.Mutex
	shown int    // passwords
	said  string // shown to the last client before its login
}

// newHouse starts a server with these timeouts. nil stands for the defaults in docs/sftp.md.
func newHouse(t *testing.T, p *timeouts) *house {
	t.Helper()
	h := &house{}
	d, err := New(Config{
		Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
		Password: func(_ context.Context, c Caller, secret string) (Client, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.shown++
			switch secret {
			case c.Name:
				return echo(secret), nil
			case "away":
				return nil, fmt.Errorf("no manager is connected: %w", errdefs.ErrUnavailable)
			}
			return nil, fmt.Errorf("password: %w", errdefs.ErrUnauthenticated)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p != nil {
		d.timeouts = *p
	} else if d.timeouts != (timeouts{20 * time.Second, 15 * time.Minute, time.Minute}) {
		t.Errorf("docs/sftp.md has other limits than %v", d.timeouts)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx, l) }()
	h.close = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(long):
			t.Error("the server is still listening")
		}
	})
	t.Cleanup(h.close)
	h.Server, h.address = d, l.Addr().String()
	return h
}

// enter logs in as a user.
func (h *house) enter(t *testing.T, user string, passwords ...string) (*ssh.Client, error) {
	t.Helper()
	if passwords == nil {
		passwords = []string{user}
	}
	tries := 0
	h.said = ""
	c, err := ssh.Dial("tcp", h.address, &ssh.ClientConfig{
		BannerCallback: func(words string) error { h.said += words; return nil },
		User:           user, HostKeyCallback: ssh.FixedHostKey(h.host[0].PublicKey()), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, Timeout: long,
		Auth: []ssh.AuthMethod{ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) {
			tries++
			return passwords[(tries-1)%len(passwords)], nil
		}), 100)},
	})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// serves returns an error unless the connection is served.
func serves(c *ssh.Client) error {
	s, err := c.NewSession()
	if err != nil {
		return err
	}
	return s.RequestSubsystem("sftp")
}

// ends waits until the server has ended a connection.
func ends(t *testing.T, c io.Reader) {
	t.Helper()
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, c)
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(long):
		t.Fatal("the connection continues")
	}
}

// A user can have 32 connections, regardless of other users. A connection that ends makes room for
// another one.
func TestConnectionsOfOneUser(t *testing.T) {
	h := newHouse(t, nil)
	var all []*ssh.Client
	for range limits.PerUser {
		c, err := h.enter(t, "ann")
		if err == nil {
			err = serves(c)
		}
		if err != nil {
			t.Fatalf("connection %d: %v", len(all)+1, err)
		}
		all = append(all, c)
	}
	if c, err := h.enter(t, "ann"); err == nil && serves(c) == nil {
		t.Error("one more than the limit is served")
	}
	if c, err := h.enter(t, "bob"); err != nil || serves(c) != nil {
		t.Errorf("somebody else is not served: %v", err)
	}
	all[0].Close()
	wait.Until(t, "there is room again", func() bool {
		c, err := h.enter(t, "ann")
		return err == nil && serves(c) == nil
	})
}

// Connections that send nothing use up the limit of their address, and further ones are refused
// with a message. The server ends them when their time to log in is over.
func TestStrangersAreFewAndLeave(t *testing.T) {
	h := newHouse(t, nil)
	knock := func() net.Conn {
		c, err := net.Dial("tcp", h.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	var last net.Conn
	for range limits.PerAddress {
		last = knock()
	}
	var said string
	raw, err := io.ReadAll(knock())
	if said = string(raw); err != nil || !strings.Contains(said, "too many connections") {
		t.Errorf("one more gets %q, %v", said, err)
	}
	last.Close()
	wait.Until(t, "there is room again", func() bool {
		c, err := h.enter(t, "ann")
		return err == nil && serves(c) == nil
	})

	h = newHouse(t, &timeouts{handshake: 100 * time.Millisecond, idle: long, slow: long})
	ends(t, knock())
	wait.Until(t, "no connection is left", func() bool {
		open, strangers := h.guard.Counts()
		return open == 0 && strangers == 0
	})
}

// A client that has logged in and is silent is disconnected, later than one that has not logged in.
// A client that does not read is disconnected too.
func TestSilenceEnds(t *testing.T) {
	h := newHouse(t, &timeouts{handshake: long, idle: 300 * time.Millisecond, slow: long})
	c, err := h.enter(t, "ann")
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- c.Wait() }()
	select {
	case <-gone:
	case <-time.After(long):
		t.Fatal("a silent client stays connected")
	}

	h = newHouse(t, &timeouts{handshake: long, idle: long, slow: 300 * time.Millisecond})
	here, there := net.Pipe() // no process reads the other end
	defer there.Close()
	p := &timedConn{Conn: here, timeouts: h.timeouts}
	p.in.Store(true)
	if _, err := p.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("to a client that does not read: %v", err)
	}

}

// A client that sends data stays connected: the timeout counts from the last message, and the
// timeout of the handshake ends with the handshake.
func TestWhoTalksStays(t *testing.T) {
	for span := 2 * time.Second; !talks(t, span); span *= 2 {
		if span > long {
			t.Fatal("a guest cannot log in and talk in time")
		}
	}
}

// talks has a client that sends data for twice the timeout of silent connections. It returns false
// if the machine is too busy for that.
func talks(t *testing.T, span time.Duration) bool {
	t.Helper()
	h := newHouse(t, &timeouts{handshake: span, idle: span, slow: span})
	c, err := h.enter(t, "ann")
	if err != nil {
		t.Logf("no login within %v: %v", span, err)
		return false
	}
	began := time.Now()
	for heard := began; heard.Sub(began) < 2*span; heard = time.Now() {
		time.Sleep(10 * time.Millisecond)
		if _, _, err := c.SendRequest("keepalive@openssh.com", true, nil); err != nil {
			if time.Since(heard) > span/2 {
				t.Logf("silent for %v: %v", time.Since(heard), err)
				return false
			}
			t.Fatalf("put out after %v: %v", time.Since(began), err)
		}
	}
	return true
}

func TestChannelsOfOneConnection(t *testing.T) {
	h := newHouse(t, nil)
	c, err := h.enter(t, "ann")
	if err != nil {
		t.Fatal(err)
	}
	var first *ssh.Session
	for i := range maxChannels {
		s, err := c.NewSession()
		if err == nil {
			err = s.RequestSubsystem("sftp")
		}
		if err != nil {
			t.Fatalf("channel %d: %v", i+1, err)
		}
		if first == nil {
			first = s
		}
	}
	var refused *ssh.OpenChannelError
	if _, err := c.NewSession(); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("one more: %v", err)
	}
	first.Close()
	wait.Until(t, "there is room again", func() bool { return serves(c) == nil })
}

// One connection has six login attempts. A wrong password counts against its address, and an
// attempt that could not be checked does not.
func TestTries(t *testing.T) {
	h := newHouse(t, nil)
	if _, err := h.enter(t, "ann", "wrong"); err == nil {
		t.Error("came in")
	}
	h.mu.Lock()
	shown := h.shown
	h.mu.Unlock()
	if shown == 0 || shown > sshserver.MaxTries {
		t.Errorf("%d passwords were looked at in one connection", shown)
	}
	guessed := func() int {
		return h.guard.Wrong("127.0.0.1")
	}
	if guessed() != shown {
		t.Errorf("%d of %d count", guessed(), shown)
	}
	if h.said != "" {
		t.Errorf("a rejected client gets %q", h.said)
	}
	if _, err := h.enter(t, "ann", "away"); err == nil {
		t.Error("logged in although no manager could authenticate")
	}
	if !strings.Contains(h.said, "try again") {
		t.Errorf("a client that cannot be authenticated yet gets %q", h.said)
	}
	if guessed() != shown {
		t.Error("an attempt that was not checked counts as a failure")
	}
	if c, err := h.enter(t, "ann", "wrong", "ann"); err != nil || serves(c) != nil {
		t.Errorf("right at the second try: %v", err)
	}
	for guessed() < sshserver.MaxWrong-1 {
		h.guard.Failed("127.0.0.1", "eve", time.Now())
	}
	if _, err := h.enter(t, "bob", "wrong", "bob"); err == nil {
		t.Error("came in by the connection that guessed too often")
	}
}

// Wrong passwords from a shared address do not lock out users who have logged in from it.
func TestStrangersLockNobodyOut(t *testing.T) {
	h := newHouse(t, nil)
	if c, err := h.enter(t, "ann", "ann"); err != nil || serves(c) != nil {
		t.Fatal(err)
	}
	for range sshserver.MaxWrong {
		h.guard.Failed("127.0.0.1", "eve", time.Now())
	}
	if _, err := h.enter(t, "bob", "bob"); err == nil {
		t.Error("another user logs in from an address with too many failures")
	}
	if c, err := h.enter(t, "ann", "ann"); err != nil || serves(c) != nil {
		t.Errorf("who has logged in before is locked out: %v", err)
	}
}

// A server that stops ends all connections, before and after their login.
func TestClosing(t *testing.T) {
	h := newHouse(t, nil)
	c, err := h.enter(t, "ann")
	if err != nil || serves(c) != nil {
		t.Fatal(err)
	}
	stranger, err := net.Dial("tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	h.close()
	ends(t, stranger)
	if _, err := h.enter(t, "ann"); err == nil {
		t.Error("came in when it was closed")
	}
}

// Messages to a client outside of the protocol are limited in size and sent one after the other,
// whatever happens at the same time.
func TestFewWordsBeside(t *testing.T) {
	h := newHouse(t, nil)
	c, err := h.enter(t, "talker")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	beside, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestSubsystem("sftp"); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(beside)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(said), "\n"); n != maxLines {
		t.Errorf("got %d lines", n)
	}
	for line := range strings.Lines(string(said)) {
		if words := strings.TrimSuffix(line, "\r\n"); words == "" || strings.Trim(words, words[:1]) != "" {
			t.Errorf("told %q", line)
		}
	}
}
