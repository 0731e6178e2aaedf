package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

// fakeGateway is an SSH server that runs commands and serves files of a directory of this
// machine.
type fakeGateway struct {
	t      *testing.T
	config *ssh.ServerConfig
	dir    string

	mu      sync.Mutex
	users   []string // users that logged in
	started chan string
}

// newKey returns a key, and the contents of its private and public file.
func newKey(t *testing.T) (signer ssh.Signer, private, public string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// newFakeGateway starts a gateway and makes f return its address, for an account with one key and a
// token. It returns the home directory that has the key.
func newFakeGateway(t *testing.T, f *clitest.Server) (g *fakeGateway, home string) {
	t.Helper()
	for _, program := range []string{"ssh", "scp"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	host, _, hostKey := newKey(t)
	account, private, public := newKey(t)
	g = &fakeGateway{t: t, dir: t.TempDir(), config: &ssh.ServerConfig{}, started: make(chan string, 16)}
	g.config.AddHostKey(host)
	g.config.PublicKeyCallback = func(who ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(account.PublicKey().Marshal()) {
			return nil, fmt.Errorf("another key")
		}
		return nil, nil
	}
	g.config.PasswordCallback = func(_ ssh.ConnMetadata, token []byte) (*ssh.Permissions, error) {
		if string(token) != "brt_token" {
			return nil, fmt.Errorf("another token")
		}
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go g.serve(l)
	f.Data("SSHEndpoint", fmt.Sprintf(`{"server":{"ssh":{"host":"127.0.0.1","port":%d,"hostKey":%q}}}`, l.Addr().(*net.TCPAddr).Port, hostKey))
	f.Data("SSHKeys", fmt.Sprintf(`{"sshKeys":{"edges":[{"node":{"id":"1","name":"laptop","status":"ACTIVE","publicKey":%q}}],"pageInfo":{}}}`, public))
	home = filepath.Join(t.TempDir(), "a home") // a path that must be quoted
	write := func(name, text string) {
		path := filepath.Join(home, ".ssh", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, other, otherPublic := newKey(t)
	write("a", other)
	write("a.pub", otherPublic)
	write("berth-key", private)
	write("berth-key.pub", public)
	return g, home
}

func (g *fakeGateway) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			conn, channels, requests, err := ssh.NewServerConn(c, g.config)
			if err != nil {
				return
			}
			defer conn.Close()
			g.mu.Lock()
			g.users = append(g.users, conn.User())
			g.mu.Unlock()
			go ssh.DiscardRequests(requests)
			for n := range channels {
				if ch, asked, err := n.Accept(); err == nil {
					go g.run(ch, asked)
				}
			}
		}()
	}
}

// run answers exec and sftp.
func (g *fakeGateway) run(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	for r := range requests {
		var what struct{ Text string }
		_ = ssh.Unmarshal(r.Payload, &what)
		_ = r.Reply(r.Type == "exec" || r.Type == "subsystem" && what.Text == "sftp", nil)
		switch r.Type {
		case "exec":
			g.started <- what.Text
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{g.exec(ch, what.Text)}))
			return
		case "subsystem":
			s, err := sftp.NewServer(ch, sftp.WithServerWorkingDirectory(g.dir))
			if err != nil {
				g.t.Error(err)
				return
			}
			_ = s.Serve()
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{}))
			return
		}
	}
}

func (g *fakeGateway) exec(ch ssh.Channel, command string) uint32 {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, ch, ch.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		g.t.Error(err)
		return 1
	}
	go func() {
		_, _ = io.Copy(in, ch)
		in.Close()
	}()
	_ = cmd.Run()
	return uint32(cmd.ProcessState.ExitCode())
}

// seen returns the names of the users that logged in, each once.
func (g *fakeGateway) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.users
	g.users = nil
	return all
}
