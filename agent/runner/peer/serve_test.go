package peer_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/agent/runner/peer"
)

// serve runs a server on loopback and returns the directory with its files, and its address.
func serve(t *testing.T, from string) (dir, address string) {
	t.Helper()
	dir, _ = written(t, files(1))
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- peer.Server{Dir: dir, Listener: l, From: []netip.Prefix{netip.MustParsePrefix(from)}}.Serve(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return dir, l.Addr().String()
}

func key(t *testing.T, path string) ssh.Signer {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// login tries to log in. Only the key of the session is accepted, from its network, as any user.
func login(address string, auth ...ssh.AuthMethod) error {
	c, err := ssh.Dial("tcp", address, &ssh.ClientConfig{User: "anyone", Auth: auth, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second})
	if err == nil {
		c.Close()
	}
	return err
}

func TestOnlyTheSessionLogsIn(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, "127.0.0.0/8")
	stranger, _ := written(t, files(2))
	if err := login(address, ssh.PublicKeys(key(t, filepath.Join(dir, "id_ed25519")))); err != nil {
		t.Errorf("the key of the session: %v", err)
	}
	for name, auth := range map[string][]ssh.AuthMethod{
		"no key":                 nil,
		"a password":             {ssh.Password("password")},
		"another session's key":  {ssh.PublicKeys(key(t, filepath.Join(stranger, "id_ed25519")))},
		"the host key":           {ssh.PublicKeys(key(t, filepath.Join(dir, "host_ed25519")))},
		"another session's host": {ssh.PublicKeys(key(t, filepath.Join(stranger, "host_ed25519")))},
	} {
		if err := login(address, auth...); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOtherNetworksAreRefused(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, "10.213.0.0/27")
	if err := login(address, ssh.PublicKeys(key(t, filepath.Join(dir, "id_ed25519")))); err == nil {
		t.Error("a client outside of the session's network logs in")
	}
}

// OpenSSH's client uses the written configuration, and does not prompt.
func TestOpenSSHUsesTheConfiguration(t *testing.T) {
	t.Parallel()
	client, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("ssh is not installed; tools/setup/debian.sh test installs it")
	}
	dir, address := serve(t, "127.0.0.0/8")
	host, port, _ := net.SplitHostPort(address)
	text, err := os.ReadFile(filepath.Join(dir, "ssh_config"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), peer.Dir, dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(target string) (string, error) {
		out, err := exec.Command(client, "-F", config, "-o", "Port="+port, "-o", "HostName="+host, target, "echo from $SSH_CONNECTION").CombinedOutput()
		return string(out), err
	}
	if out, err := run("sub1"); err != nil || !strings.HasPrefix(out, "from 127.0.0.1 ") {
		t.Errorf("sub1: %q, %v", out, err)
	}
	if out, err := exec.Command(client, "-F", config, "-G", "elsewhere").Output(); err != nil || strings.Contains(string(out), dir) || !strings.Contains(string(out), "\nport 22\n") {
		t.Errorf("the configuration applies to another host: %s, %v", out, err)
	}
}

// A kernel counts as met if it has connected, even if it has ended since.
func TestMeeting(t *testing.T) {
	t.Parallel()
	dir, _ := written(t, files(1))
	hosts := filepath.Join(dir, "hosts")
	m, err := peer.NewMeeting(dir, "main", hosts)
	if err != nil {
		t.Fatal(err)
	}
	met := make(chan error, 1)
	go func() { met <- m.Wait(t.Context()) }()
	m.Arrived(netip.MustParseAddr("192.0.2.7"))
	select {
	case err := <-met:
		t.Fatalf("it has met before the address of sub1 was known: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost sub1\n192.0.2.6 main\n192.0.2.7\tsub1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-met; err != nil {
		t.Error(err)
	}
}
