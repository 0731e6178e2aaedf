package sshproxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// OpenSSH's clients work through the gateway as with OpenSSH's server.
func TestOpenSSH(t *testing.T) {
	w := newWorld(t)
	config := w.config()
	for name, c := range map[string]struct {
		stdin     string
		args      []string
		out, errs string
		code      int
	}{
		"command":           {"in\n", []string{"train@gw", "cat; echo e >&2; exit 7"}, "in\n", "e\n", 7},
		"script":            {"echo script; exit 3\n", []string{"-T", "train@gw"}, "script\n", "", 3},
		"signal":            {"", []string{"train@gw", "kill -9 $$"}, "", "", 255},
		"half close":        {"a", []string{"train@gw", "cat; echo b"}, "ab\n", "", 0},
		"terminal":          {"", []string{"-tt", "train@gw", "test -t 0 && echo yes"}, "yes\r\n", "", 0},
		"kernel":            {"", []string{"train.sub1@gw", "echo sub"}, "sub\n", "", 0},
		"unknown":           {"", []string{"other@gw", "true"}, "", "berth: session not found\r\n", 1},
		"unknown, terminal": {"", []string{"-tt", "other@gw"}, "", "berth: session not found\r\n", 1},
		"ambiguous":         {"", []string{"twins@gw"}, "", "berth: 2 sessions are named twins; use the ID of one\r\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := run(t, c.stdin, append([]string{"ssh", "-F", config}, c.args...)...)
			if out != c.out || errs != c.errs || code != c.code {
				t.Errorf("%q, %q, %d; want %q, %q, %d", out, errs, code, c.out, c.errs, c.code)
			}
		})
	}
	w.mu.Lock()
	entered := strings.Join(w.entered, " ")
	w.mu.Unlock()
	if !strings.Contains(entered, "train/sub1") {
		t.Errorf("entered %s", entered)
	}
	wait.Until(t, "all have left", func() bool { return w.connections() == 0 })
}

func TestFilesThroughTheGateway(t *testing.T) {
	w := newWorld(t)
	config, dir := w.config(), t.TempDir()
	content := make([]byte, 30<<20)
	_, _ = rand.Read(content)
	src := filepath.Join(dir, "src")
	if err := os.WriteFile(src, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"-s", "-O"} {
		for _, c := range [][2]string{{src, "train@gw:" + dir + "/up"}, {"train@gw:" + dir + "/up", dir + "/down"}} {
			if _, errs, code := run(t, "", "scp", "-q", protocol, "-F", config, c[0], c[1]); code != 0 {
				t.Fatalf("%s %v: %s", protocol, c, errs)
			}
		}
		for _, name := range []string{"up", "down"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s %s: %d bytes, %v", protocol, name, len(got), err)
			}
			os.Remove(filepath.Join(dir, name))
		}
	}
}

// A client can jump through one session to another: the inner connection is a forward from the
// first session's network to the gateway.
func TestJump(t *testing.T) {
	w := newWorld(t)
	out, errs, code := run(t, "", "ssh", "-F", w.config("Match user train.sub1", "ProxyCommand ssh -F "+w.config()+" -W %h:%p train@gw"), "train.sub1@gw", "echo there")
	if out != "there\n" || code != 0 {
		t.Errorf("%q %q %d", out, errs, code)
	}
}

// Forwards work in both directions. The agent is forwarded only for a client that requested it.
func TestForwardsThroughTheGateway(t *testing.T) {
	w := newWorld(t)
	c := w.must("train")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all, _ := io.ReadAll(conn)
			_, _ = conn.Write(bytes.ToUpper(all))
			conn.Close()
		}
	}()
	ask := func(conn net.Conn, err error) string {
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "text")
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		all, _ := io.ReadAll(conn)
		return string(all)
	}
	if got := ask(c.Dial("tcp", l.Addr().String())); got != "TEXT" {
		t.Errorf("-L: %q", got)
	}
	back, err := c.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := back.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(conn)
		_, _ = conn.Write(bytes.ToUpper(all))
		conn.Close()
	}()
	if got := ask(net.Dial("tcp", back.Addr().String())); got != "TEXT" {
		t.Errorf("-R 0: %q", got)
	}
	if err := back.Close(); err != nil {
		t.Errorf("cancel: %v", err)
	}
	agents := c.HandleChannelOpen("auth-agent@openssh.com")
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.SendRequest("auth-agent-req@openssh.com", true, nil); !ok || err != nil {
		t.Fatalf("agent: %v %v", ok, err)
	}
	socket, err := s.Output("echo $SSH_AUTH_SOCK")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		ch, requests, err := (<-agents).Accept()
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		all, _ := io.ReadAll(ch)
		_, _ = ch.Write(bytes.ToUpper(all))
		ch.Close()
	}()
	if got := ask(net.Dial("unix", strings.TrimSpace(string(socket)))); got != "TEXT" {
		t.Errorf("agent: %q", got)
	}
}

// hold starts a command that runs until its connection ends, and returns a function for the output
// that the client gets at the end.
func hold(t *testing.T, c *ssh.Client) (said func() string) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	s.Stderr = &errs
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start("echo started; cat"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	return func() string {
		done := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, out); _ = s.Wait(); _ = c.Wait(); close(done) }()
		select {
		case <-done:
			return errs.String()
		case <-time.After(long):
			t.Fatal("the connection continues")
			return ""
		}
	}
}

// Whatever ends a connection, the person gets the reason, and the connection and its forwards are
// closed.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, kernels []io.Closer)
		want string
	}{
		"the permission is revoked": {func(w *world, _ []io.Closer) { w.revoke(true) }, "your access has ended: you are not a member"},
		"the gateway stops":         {func(w *world, _ []io.Closer) { go w.stop() }, "the gateway is restarting"},
		"the kernel ends": {func(_ *world, kernels []io.Closer) {
			for _, k := range kernels {
				k.Close()
			}
		}, "the connection to the session is lost"},
		"the session ends": {func(w *world, kernels []io.Closer) {
			w.revoke(false)
			kernels[0].Close()
		}, "your access has ended: you are not a member"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var kernels []io.Closer
			w.kernel = func(context.Context) (io.ReadWriteCloser, error) {
				k, err := start(t, []string{program, "sshd"})
				kernels = append(kernels, k)
				return k, err
			}
			client := w.must("train")
			said := hold(t, client)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			forward, err := client.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			c.end(w, kernels)
			if got := said(); !strings.Contains(got, "berth: "+c.want) {
				t.Errorf("the person sees %q", got)
			}
			if _, err := forward.Read(make([]byte, 1)); err == nil {
				t.Error("the forward continues")
			}
			t.Logf("ended after %v", time.Since(began))
			wait.Until(t, "the presence ends", func() bool { return w.left.Load() == 1 })
		})
	}
}

// The shortest command is answered before its channel closes, also on a busy machine.
func TestShortCommands(t *testing.T) {
	w := newWorld(t)
	c := w.must("train")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 30 {
				s, err := c.NewSession()
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := s.Output("echo x"); string(out) != "x\n" || err != nil {
					t.Errorf("%q, %v", out, err)
				}
			}
		})
	}
	all.Wait()
}

// The permission is checked for every channel and forward, even before its loss is reported.
func TestEveryChannelIsChecked(t *testing.T) {
	w := newWorld(t)
	c := w.must("train")
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w.revoke(false)
	if _, err := c.NewSession(); err == nil || !strings.Contains(err.Error(), "not a member") {
		t.Errorf("session: %v", err)
	}
	if _, err := c.Dial("tcp", w.address); err == nil || !strings.Contains(err.Error(), "not a member") {
		t.Errorf("forward: %v", err)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Errorf("listening at %v", l.Addr())
	}
}

// Data counts as activity; an idle connection with keep-alives does not.
func TestUse(t *testing.T) {
	w := newWorld(t)
	c := w.must("train")
	for range 3 {
		if _, _, err := c.SendRequest("keepalive@openssh.com", true, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.moved.Load(); n != 0 {
		t.Errorf("keep-alives count as use %d times", n)
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Output("echo x"); err != nil {
		t.Fatal(err)
	}
	if w.moved.Load() == 0 {
		t.Error("data does not count as use")
	}
	if n := w.connections(); n != 1 {
		t.Errorf("%v connections", n)
	}
}

func TestTargets(t *testing.T) {
	for user, want := range map[string]string{
		"train": "|train|", "train.sub1": "|train|sub1", "train.main": "|train|main", "v1.2": "|v1.2|", "v1.2.sub12": "|v1.2|sub12",
		"a.sub0": "|a.sub0|", ".sub1": "|.sub1|", "ann@example.org+train": "ann@example.org|train|",
		"ann+x@example.org+train.sub2": "ann+x@example.org|train|sub2", "": "||",
	} {
		account, got := parseTarget(user)
		if s := fmt.Sprintf("%s|%s|%s", account, got.Session, got.Kernel); s != want {
			t.Errorf("%q: %s, want %s", user, s, want)
		}
	}
}
