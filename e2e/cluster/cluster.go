// Package cluster runs the real server, berthd up, on a data directory of its
// own, for the scenarios below e2e: it makes users through the API, runs the
// real command line, can kill the server and start it again, and in the end
// looks for what was left behind on the machine. Only tests import it.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/berthhq/berth/internal/client"
)

// Generous, for a loaded machine; nothing waits that long when all is well.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// Options of a platform.
type Options struct {
	// Accelerators is how many mock ones the agent offers.
	Accelerators int
}

// Platform is one server process with all its data.
type Platform struct {
	URL             string
	Email, Password string // of the first superadmin

	opt   Options
	dir   string // all of ours; the server's data is in data
	data  string
	bin   string
	log   *journal
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	admin *client.Client
	agent string // its id on this machine
	users atomic.Int64
	vault vault

	lifeline io.Closer // the cleaner's input: the end of this process closes it
}

// cleaner ends what is still there when this process is gone, in whatever way.
const cleaner = `read -r _
pid=$(cat "$1/pid" 2>/dev/null) && kill -INT "$pid" && while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
rm -rf "$1"`

// New prepares a platform below a new temporary directory.
func New(opt Options) (*Platform, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		return nil, err
	}
	// A container's own user must reach its root file system below.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", cleaner, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start cleaner: %w", err)
	}
	bin := filepath.Join(root, "bin")
	if other := os.Getenv("BERTH_BIN"); other != "" {
		bin = other
	}
	return &Platform{opt: opt, dir: dir, data: filepath.Join(dir, "data"), bin: bin, log: &journal{}, lifeline: lifeline}, nil
}

// repository is the directory with go.mod above the test.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no go.mod above the test")
}

// Bin is the path of a program that make build made.
func (p *Platform) Bin(name string) string { return filepath.Join(p.bin, name) }

// Data is the server's data directory.
func (p *Platform) Data() string { return p.data }

// Pid is the server's process.
func (p *Platform) Pid() int { return p.cmd.Process.Pid }

// Start runs the server until Stop, Kill or its own end, and returns when its
// agent is there with all accelerators.
func (p *Platform) Start(flags ...string) error {
	images := filepath.Join(filepath.Dir(p.bin), "build/images")
	if root, err := repository(); err == nil {
		images = filepath.Join(root, "build/images")
	}
	args := append([]string{
		"up", "--data", p.data, "--listen", p.listen(), "--bin", p.bin, "--images", images,
		"--mock-accelerators", strconv.Itoa(p.opt.Accelerators), "--log-level", "info",
	}, flags...)
	p.cmd = exec.Command(p.Bin("berthd"), args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // our own Ctrl-C is not for it
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	from := p.log.Len()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%w (run make build)", err)
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd)
	if err := os.WriteFile(p.pidFile(), []byte(strconv.Itoa(p.Pid())), 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := p.ready(ctx, from); err != nil {
		return fmt.Errorf("wait until the server is ready: %w", err)
	}
	return nil
}

func (p *Platform) pidFile() string { return filepath.Join(p.dir, "pid") }

// listen is the address of before, so that clients outlive a restart.
func (p *Platform) listen() string {
	if p.URL == "" {
		return "127.0.0.1:0"
	}
	return strings.TrimPrefix(p.URL, "http://")
}

func (p *Platform) ready(ctx context.Context, from int) error {
	if err := p.until(ctx, "the greeting", func() bool { return strings.Contains(p.log.From(from), "Next:") }); err != nil {
		return err
	}
	if p.admin == nil {
		if err := p.firstLogin(ctx); err != nil {
			return err
		}
	}
	id, err := os.ReadFile(filepath.Join(p.data, "agent/id"))
	if err != nil {
		return err
	}
	p.agent = strings.TrimSpace(string(id))
	return p.until(ctx, "the agent and its accelerators", func() bool {
		n, err := p.accelerators(ctx)
		return err == nil && n == p.opt.Accelerators && p.answers(ctx, "/readyz")
	})
}

// until polls; it ends early when the server does.
func (p *Platform) until(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-p.ended:
			return fmt.Errorf("%s: the server ended: %s", what, p.cmd.ProcessState)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (p *Platform) answers(ctx context.Context, path string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// firstLogin reads what the server tells root, and makes a token with it.
func (p *Platform) firstLogin(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(p.data, "first-login.json"))
	if err != nil {
		return err
	}
	var first struct{ URL, Email, Password string }
	if err := json.Unmarshal(text, &first); err != nil {
		return fmt.Errorf("first-login.json: %w", err)
	}
	p.URL, p.Email, p.Password = first.URL, first.Email, first.Password
	p.Secret("the first password", first.Password)
	p.admin, _, err = p.login(ctx, p.Email, p.Password)
	return err
}

// login makes an access token, which outlives restarts, and a client with it.
func (p *Platform) login(ctx context.Context, email, password string) (*client.Client, string, error) {
	browser, err := client.New(p.URL, "", "berth-e2e")
	if err != nil {
		return nil, "", err
	}
	if _, err := browser.Login(ctx, email, password); err != nil {
		return nil, "", fmt.Errorf("log in as %s: %w", email, err)
	}
	_, secret, err := browser.CreateAccessToken(ctx, "e2e", time.Time{})
	if err != nil {
		return nil, "", err
	}
	p.Secret("the access token of "+email, secret)
	if err := browser.Logout(ctx); err != nil {
		return nil, "", err
	}
	c, err := client.New(p.URL, secret, "berth-e2e")
	return c, secret, err
}

// accelerators counts those that can be used now.
func (p *Platform) accelerators(ctx context.Context) (int, error) {
	agents, err := p.admin.Agents(ctx, "")
	if err != nil || len(agents) != 1 || agents[0].Status != "alive" {
		return -1, err
	}
	resp, err := p.admin.Raw(ctx, client.Request{Query: `{ devices(where: {plugin: "mock", health: healthy, allocatable: true}) { totalCount } }`})
	if err != nil {
		return -1, err
	}
	var out struct{ Devices struct{ TotalCount int } }
	return out.Devices.TotalCount, errors.Join(resp.Err(), json.Unmarshal(resp.Data, &out))
}

// Interrupt is Ctrl-C: it waits for the server's end.
func (p *Platform) Interrupt() error { return p.end(syscall.SIGINT) }

// Kill is kill -9.
func (p *Platform) Kill() error { return p.end(syscall.SIGKILL) }

func (p *Platform) end(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("end the server: %w", err)
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		return fmt.Errorf("the server does not end within %s of %s", stopTimeout, s)
	}
	if code := p.cmd.ProcessState.ExitCode(); s == syscall.SIGINT && code != 0 {
		return fmt.Errorf("the server ended with %d after Ctrl-C", code)
	}
	return os.Remove(p.pidFile())
}

// Close stops the server with its sessions, as berthd up --stop-sessions does,
// and returns what is left on the machine, which secret lies in the open, and
// where the agents and the database differ.
func (p *Platform) Close() error {
	err := p.endSessions()
	if err == nil {
		err = p.differs()
	}
	if err == nil {
		err = p.leaked()
	}
	if err == nil {
		err = p.Interrupt()
	} else {
		err = errors.Join(err, p.Kill())
	}
	if err == nil {
		err = p.Leftovers()
	}
	return errors.Join(err, os.RemoveAll(p.dir), p.lifeline.Close())
}

// differs looks whether what the agents run is what the database says.
func (p *Platform) differs() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	found, err := p.admin.Occupancy(ctx)
	if err != nil {
		return fmt.Errorf("compare agents with the database: %w", err)
	}
	for _, d := range found.Drift {
		err = errors.Join(err, fmt.Errorf("%s on %s %s: %s", d.Kind, d.Agent, d.Device, d.Detail))
	}
	return err
}

func (p *Platform) leaked() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	found, looked, err := p.Leaks(ctx)
	if err != nil {
		return err
	}
	fmt.Println(looked)
	if len(found) > 0 {
		return fmt.Errorf("secrets in the open:\n  %s", strings.Join(found, "\n  "))
	}
	return nil
}

func (p *Platform) endSessions() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	live := client.SessionFilter{Live: true}
	sessions, err := p.admin.Sessions(ctx, live)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if _, err := p.admin.TerminateSession(ctx, s.ID, true); err != nil {
			return err
		}
	}
	return p.until(ctx, "the end of all sessions", func() bool {
		sessions, err := p.admin.Sessions(ctx, live)
		return err == nil && len(sessions) == 0
	})
}
