package sshproxy

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/sshserver"
)

// long is the timeout for expected events.
const long = 2 * time.Minute

var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "runner")
	if err == nil {
		program = filepath.Join(dir, "berth-runner")
		build := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/berthhq/berth/cmd/berth-runner")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
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

// world is a gateway and a person, ann, who can enter the session "train". It implements the
// accounts, the person and the entries.
type world struct {
	t       testing.TB
	proxy   *Proxy
	address string
	stop    func()
	signer  ssh.Signer // ann's key
	keyFile string
	known   string
	metrics *prometheus.Registry

	kernel func(context.Context) (io.ReadWriteCloser, error) // nil runs the runner

	mu      sync.Mutex
	ended   chan struct{}
	barred  error // returned by Check
	entered []string
	moved   atomic.Int64
	left    atomic.Int64

	// For benchmarks: process IDs of runners, and the CPU time of clients and of this process
	// except for the gateway.
	runners       []int
	openSSH       int
	clients, idle time.Duration
}

func (w *world) Key(_ context.Context, c Caller, key ssh.PublicKey) (Person, error) {
	if !bytes.Equal(key.Marshal(), w.signer.PublicKey().Marshal()) {
		return nil, problem.Unauthenticated("unknown key")
	}
	if c.Account == "" && w.twice() {
		return nil, problem.Precondition("the key belongs to several accounts: log in as EMAIL+SESSION")
	}
	return person{w}, nil
}

func (w *world) twice() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.barred == errTwice }

var errTwice = errors.New("two accounts")

func (w *world) Token(_ context.Context, _ Caller, token string) (Person, error) {
	if token != "secret" {
		return nil, problem.Unauthenticated("wrong token")
	}
	return person{w}, nil
}

type person struct{ w *world }

func (p person) ID() string { return "ann" }

func (p person) Enter(_ context.Context, t Target) (Entry, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.entered = append(p.w.entered, t.Session+"/"+t.Kernel)
	switch t.Session {
	case "train":
		return &entry{p.w}, nil
	case "twins":
		return nil, problem.Precondition("2 sessions are named twins; use the ID of one")
	}
	return nil, problem.NotFound("session")
}

type entry struct{ w *world }

func (e *entry) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	if e.w.kernel != nil {
		return e.w.kernel(ctx)
	}
	p, err := start(e.w.t, []string{program, "sshd"})
	if err == nil {
		e.w.mu.Lock()
		e.w.runners = append(e.w.runners, p.cmd.Process.Pid)
		e.w.mu.Unlock()
	}
	return p, err
}

func (e *entry) Check(context.Context) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return e.w.barred
}

func (e *entry) Ended() <-chan struct{} { e.w.mu.Lock(); defer e.w.mu.Unlock(); return e.w.ended }
func (e *entry) Moved()                 { e.w.moved.Add(1) }
func (e *entry) Leave()                 { e.w.left.Add(1) }

// revoke removes the permission, and closes Ended if report is true.
func (w *world) revoke(report bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.barred = problem.Forbidden("you are not a member of the project any longer")
	if report {
		close(w.ended)
	}
}

// process is the stdin and stdout of a program.
type process struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

func start(t testing.TB, command []string) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
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
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{out, in, cmd}, nil
}

// newWorld starts a gateway.
func newWorld(t testing.TB) *world {
	t.Helper()
	signer := func() (ssh.Signer, ed25519.PrivateKey) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ssh.NewSignerFromKey(private)
		if err != nil {
			t.Fatal(err)
		}
		return s, private
	}
	w := &world{t: t, ended: make(chan struct{}), metrics: prometheus.NewRegistry()}
	var private ed25519.PrivateKey
	w.signer, private = signer()
	block, err := ssh.MarshalPrivateKey(private, "ann")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w.keyFile, w.known = filepath.Join(dir, "key"), filepath.Join(dir, "known_hosts")
	host, err := sshserver.HostKeys(filepath.Join(dir, "host_ed25519_key"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	for path, text := range map[string]string{w.keyFile: string(pem.EncodeToMemory(block)), w.known: lines(w.address, host)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.proxy = New(Config{HostKeys: host, Accounts: w, Metrics: NewMetrics(w.metrics), Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.proxy.Serve(ctx, l) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(long):
			t.Error("the gateway does not stop")
		}
	})
	t.Cleanup(w.stop)
	return w
}

// lines returns the content of a known_hosts file.
func lines(address string, host []ssh.Signer) (text string) {
	for _, key := range host {
		text += knownhosts.Line([]string{address}, key.PublicKey()) + "\n"
	}
	return text
}

// dial logs in with Go's client.
func (w *world) dial(user string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	if auth == nil {
		auth = []ssh.AuthMethod{ssh.PublicKeys(w.signer)}
	}
	c, err := ssh.Dial("tcp", w.address, &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.FixedHostKey(w.proxy.cfg.HostKeys[0].PublicKey()), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, Timeout: long})
	if err == nil {
		w.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (w *world) must(user string) *ssh.Client {
	w.t.Helper()
	c, err := w.dial(user)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// connections returns the gauge of connections.
func (w *world) connections() float64 {
	var m dto.Metric
	if err := w.proxy.cfg.Metrics.connections.Write(&m); err != nil {
		w.t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// config writes a configuration for OpenSSH's clients, in which every host is a session.
func (w *world) config(lines ...string) string {
	w.t.Helper()
	host, port, _ := net.SplitHostPort(w.address)
	path := filepath.Join(w.t.TempDir(), "config")
	text := fmt.Sprintf("Host *\nHostName %s\nPort %s\nHostKeyAlias [%s]:%s\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s\nStrictHostKeyChecking yes\nLogLevel ERROR\n%s\n",
		host, port, host, port, w.keyFile, w.known, strings.Join(lines, "\n"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// run runs a command to its end.
func run(t *testing.T, stdin string, argv ...string) (out, errs string, code int) {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skipf("%s is not installed", argv[0])
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader(stdin), &o, &e, 10*time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%q: %v %v\n%s%s", argv, err, ctx.Err(), &o, &e)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}
