package sshd_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/gateway/sshproxy"
	"github.com/berthhq/berth/gateway/sshproxy/sshproxytest"
)

// behind is a configuration for a runner that a command starts, behind a gateway of its own.
func behind(t *testing.T, command []string, lines ...string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(gateway(t, command...))
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("Host *\nHostName 127.0.0.1\nPort %s\nIdentitiesOnly yes\nIdentityFile %s\n", port, keyFile(t)) + common
	text += strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gateway returns the address of a gateway to a runner that a command starts.
func gateway(t *testing.T, command ...string) string {
	t.Helper()
	return sshproxytest.Start(t, func(ctx context.Context, _ sshproxy.Target) (io.ReadWriteCloser, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return &server{out, in, cmd}, nil
	})
}

// bothWays runs a test with a client of a network, and with one that comes through a gateway.
func bothWays(t *testing.T, test func(t *testing.T, c *ssh.Client)) {
	t.Run("network", func(t *testing.T) { test(t, listen(t).dial(t)) })
	t.Run("gateway", func(t *testing.T) {
		c, err := ssh.Dial("tcp", gateway(t, program, "sshd"), &ssh.ClientConfig{
			User: "u", Auth: []ssh.AuthMethod{ssh.Password("any")}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: long,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		test(t, c)
	})
}

// server is the stdin and stdout of a runner.
type server struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

// Close ends the runner's input.
func (s *server) Close() error {
	_ = s.WriteCloser.Close()
	return s.cmd.Wait()
}
