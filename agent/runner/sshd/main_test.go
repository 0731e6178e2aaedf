package sshd_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/berthhq/berth/agent/runner/sshd"
)

// long is the timeout for expected events.
const long = 2 * time.Minute

// program is the path of the berth-runner under test.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "runner")
	if err == nil {
		program = filepath.Join(dir, "berth-runner")
		var out []byte
		build := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/berthhq/berth/cmd/berth-runner")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // static, for an empty image
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// need skips a test on a machine without a program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + program); err != nil {
			t.Skipf("%s is not installed; tools/setup/debian.sh test installs it", program)
		}
	}
	return path
}

// result is what a command printed and returned.
type result struct {
	Out, Err string
	Code     int
}

// run runs a command to its end.
func run(t *testing.T, stdin string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%q: %v %v\n%s%s", argv, err, ctx.Err(), &out, &errs)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that has to succeed, and returns its output.
func must(t *testing.T, stdin string, argv ...string) string {
	t.Helper()
	r := run(t, stdin, argv...)
	if r.Code != 0 {
		t.Fatalf("%q: exit code %d\n%s%s", argv, r.Code, r.Out, r.Err)
	}
	return r.Out
}

// common is a part of each configuration of OpenSSH's clients.
const common = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nControlMaster no\n"

// config writes a configuration of OpenSSH's clients in which every host is reached through the proxy command.
func config(t *testing.T, proxy string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := "Host *\nProxyCommand " + proxy + "\n" + common
	text += strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ours is a configuration for the runner, behind a gateway.
func ours(t *testing.T, lines ...string) string {
	return behind(t, []string{program, "sshd"}, lines...)
}

// real returns a configuration for OpenSSH's server on a pipe.
func real(t *testing.T, lines ...string) string {
	t.Helper()
	server := need(t, "sshd")
	dir := t.TempDir()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // the server refuses to start without it
			t.Skip(err)
		}
	}
	for _, name := range []string{"host", "user"} {
		must(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name))
	}
	text := fmt.Sprintf(`HostKey %s/host
AuthorizedKeysFile %s/user.pub
PermitRootLogin yes
UsePAM no
StrictModes no
X11Forwarding yes
PrintMotd no
PrintLastLog no
AcceptEnv *
Subsystem sftp internal-sftp
`, dir, dir)
	if err := os.WriteFile(filepath.Join(dir, "sshd"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config(t, server+" -i -f "+filepath.Join(dir, "sshd"), append(lines, "IdentitiesOnly yes", "IdentityFile "+filepath.Join(dir, "user"))...)
}

// host is a server on a TCP port with a host key, for clients that do not support pipes.
type host struct {
	address, port, known, fingerprint string
	key                               ssh.PublicKey
}

func listen(t *testing.T) *host {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go sshd.ServeNetwork(ctx, c, sshd.Login{HostKey: signer}, sshd.Config{Runner: program})
		}
	}()
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{address: l.Addr().String(), key: key, fingerprint: ssh.FingerprintSHA256(key)}
	_, h.port, _ = net.SplitHostPort(h.address)
	h.known = filepath.Join(t.TempDir(), "known_hosts")
	line := knownhosts.Line([]string{h.address}, key) + "\n"
	if err := os.WriteFile(h.known, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// dial connects with Go's client.
func (h *host) dial(t *testing.T) *ssh.Client {
	t.Helper()
	c, err := ssh.Dial("tcp", h.address, &ssh.ClientConfig{User: "u", HostKeyCallback: ssh.FixedHostKey(h.key), Timeout: long})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// keyFile writes a private key.
func keyFile(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// random creates a file of random bytes.
func random(t *testing.T, size int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	_, _ = rand.Read(content)
	path = filepath.Join(t.TempDir(), "random")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// same fails if a file does not have the content.
func same(t *testing.T, path string, content []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s has %d bytes that are not the %d sent: %v", path, len(got), len(content), err)
	}
}
