package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/uuid"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/gateway/sshproxy"
	"github.com/berthhq/berth/gateway/sshproxy/sshproxytest"
	"github.com/berthhq/berth/internal/portstream"
)

// ssh connects to the SSH server in a kernel, through a gateway.
func (n *node) ssh(t *testing.T, kernel string) *ssh.Client {
	t.Helper()
	address := sshproxytest.Start(t, func(ctx context.Context, _ sshproxy.Target) (io.ReadWriteCloser, error) {
		return portstream.DialSSH(ctx, n, uuid.MustParse(kernel))
	})
	began := time.Now()
	c, err := ssh.Dial("tcp", address, &ssh.ClientConfig{User: "u", Auth: []ssh.AuthMethod{ssh.Password("p")}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("connected after %v", time.Since(began))
	t.Cleanup(func() { c.Close() })
	return c
}

// An SSH client gets exactly the kernel's user, files and network. The image has one program and no
// shell.
func TestSSH(t *testing.T) {
	n := newNode(t, v1.Config{Env: []string{"PATH=/bin"}})
	defer n.run(t)()
	n.pull(t)
	kernels := make([]*ssh.Client, 2)
	for i := range kernels {
		r := n.request()
		r.HasUser, r.Uid, r.Gid, r.Gids = true, 4321, 1234, []uint32{1234}
		n.start(t, r)
		defer n.end(t, r.KernelId, time.Second)
		kernels[i] = n.ssh(t, r.KernelId)
	}
	c := kernels[0]
	command := func(c *ssh.Client, line string) (string, int) {
		t.Helper()
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		out, err := s.CombinedOutput(line)
		var exit *ssh.ExitError
		if errors.As(err, &exit) {
			return string(out), exit.ExitStatus()
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(out), 0
	}
	if out, _ := command(c, "/bin/prog id"); out != "4321 1234\n" {
		t.Errorf("commands run as %q", out)
	}
	if _, code := command(c, "prog exit 7"); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if out, code := command(c, "a | b"); code != 127 || !strings.Contains(out, "the image has no shell") {
		t.Errorf("a pipe: %q, %d", out, code)
	}
	files, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	if home, err := files.Getwd(); home != "/home/work" || err != nil {
		t.Errorf("files start in %q, %v", home, err)
	}
	f, err := files.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, "by sftp")
	f.Close()
	if out, _ := command(c, "prog cat /home/work/file"); !strings.HasPrefix(out, "by sftp") {
		t.Errorf("the file has %q", out)
	}
	if _, err := files.OpenFile("/opt/berth/runner", 2); err == nil {
		t.Error("the runner can be written to")
	}
	n.forwards(t, c, kernels[1])
	n.agents(t, c, kernels[1])
}

// forwards checks that forwards leave from, and listen in, the network of the kernel alone.
func (n *node) forwards(t *testing.T, c, sibling *ssh.Client) {
	t.Helper()
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if conn, err := c.Dial("tcp", host.Addr().String()); err == nil {
		conn.Close()
		t.Error("a forward reaches the loopback of the machine")
	}
	inside, err := c.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := inside.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	at := fmt.Sprintf("127.0.0.1:%d", inside.Addr().(*net.TCPAddr).Port)
	if conn, err := c.Dial("tcp", at); err != nil {
		t.Errorf("a port of the kernel: %v", err)
	} else if all, err := io.ReadAll(conn); string(all) != "hello" {
		t.Errorf("a port of the kernel: %q, %v", all, err)
	}
	if conn, err := sibling.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("another kernel reaches the port")
	}
	if conn, err := net.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("the machine reaches the port")
	}
	all, err := net.Listen("tcp", ":0") // as ports of the agent and of other services of the machine
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	addresses := []string{"169.254.169.254:80", "[fe80::1]:80", "127.0.0.1:0", "0.0.0.0:0"}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			addresses = append(addresses, net.JoinHostPort(ip.String(), fmt.Sprint(all.Addr().(*net.TCPAddr).Port)))
		}
	}
	var tries sync.WaitGroup
	for _, address := range addresses {
		tries.Go(func() { // packets are dropped, so each waits for its timeout
			if conn, err := c.Dial("tcp", address); err == nil {
				conn.Close()
				t.Errorf("a forward reaches %s", address)
			}
		})
	}
	tries.Wait()
}

// agents checks that the socket of a client's agent is out of reach of another kernel.
func (n *node) agents(t *testing.T, c, sibling *ssh.Client) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if ok, err := s.SendRequest("auth-agent-req@openssh.com", true, nil); !ok || err != nil {
		t.Fatalf("agent forwarding: %v %v", ok, err)
	}
	out, err := s.Output("prog env")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "SSH_AUTH_SOCK=") })
	if at < 0 {
		t.Fatalf("no agent in %q", out)
	}
	socket := strings.TrimPrefix(lines[at], "SSH_AUTH_SOCK=")
	if conn, err := sibling.Dial("unix", socket); err == nil {
		conn.Close()
		t.Error("another kernel reaches the agent of the client")
	}
	if conn, err := c.Dial("unix", socket); err != nil {
		t.Errorf("the own kernel does not: %v", err)
	} else {
		conn.Close()
	}
}
