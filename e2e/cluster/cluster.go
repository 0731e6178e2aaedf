// Package cluster runs the real server on a new data directory, for the scenarios below e2e: berthd
// up in one process tree, or each role in a separate process. It creates users through the API,
// runs the real command line, can kill and restart servers, and at the end checks that nothing is
// left on the machine. Only tests import it.
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
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/internal/fixture"
)

// Timeouts that are long enough for a loaded machine.
const (
	startTimeout = 5 * time.Minute
	stopTimeout  = 3 * time.Minute
)

// Options of a platform.
type Options struct {
	// Accelerators is the number of mock accelerators of the agent.
	Accelerators int
	// Machines are the names of simulated machines whose accelerators the agent offers, too.
	Machines []string
	// AppPaths adds apps below the paths of one host.
	AppPaths bool
	// AgentDisk is the size of a file system in memory for the agent's directory; "": on the disk
	// of the other data.
	AgentDisk string
}

// Platform is a server with all its data.
type Platform struct {
	URL             string
	Paths           string // URL of apps in path mode; "" without Options.AppPaths
	Email, Password string // of the first superadmin

	dir     string // all files of this platform; the server's data is in data
	data    string
	bin     string
	log     *journal
	up      *Process   // nil if the roles have separate processes
	servers []*Process // all processes of berthd
	admin   *client.Client
	offers  []int    // number of accelerators of each agent
	mock    int      // mock accelerators of the only agent
	made    []string // simulated machines of the only agent
	agents  []string // ids of the agents on this machine
	users   atomic.Int64
	vault   vault

	lifeline io.Closer // the cleaner's input, which is closed when this process ends
}

// cleaner is a script that ends the remaining processes and mounts after this process has ended,
// even after a crash.
const cleaner = `read -r _
for f in "$1"/*.pid; do
  pid=$(cat "$f" 2>/dev/null) && kill -INT "$pid" && while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
done
for m in "$1"/mounts/* "$1"/data/volumes/*; do umount -l "$m"; done
rm -rf --one-file-system "$1"`

// New prepares a platform below a new temporary directory.
func New(opt Options) (*Platform, error) {
	p, err := prepare()
	if err != nil {
		return nil, err
	}
	p.up, p.mock, p.made, p.offers = p.process("up"), opt.Accelerators, opt.Machines, []int{opt.Accelerators}
	if opt.AppPaths {
		address, err := freePort("tcp")
		if err != nil {
			return nil, err
		}
		p.Paths = "http://" + address
	}
	if opt.AgentDisk != "" {
		if err := p.mountAgent(opt.AgentDisk); err != nil {
			return nil, err
		}
	}
	for _, name := range opt.Machines {
		m, err := fixture.Load(name)
		if err != nil {
			return nil, err
		}
		p.offers[0] += m.Expect.Allocatable
	}
	return p, nil
}

func prepare() (*Platform, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		return nil, err
	}
	// The user of a container must be able to reach its root file system in this directory.
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
	return &Platform{dir: dir, data: filepath.Join(dir, "data"), bin: bin, log: &journal{}, lifeline: lifeline}, nil
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

// Bin returns the path of a program that make build has built.
func (p *Platform) Bin(name string) string { return filepath.Join(p.bin, name) }

// Data returns the server's data directory.
func (p *Platform) Data() string { return p.data }

// Pid returns the server's process id.
func (p *Platform) Pid() int { return p.up.Pid() }

// HasImage reports whether make images has built a starter image.
func (p *Platform) HasImage(name string) bool {
	_, err := os.Stat(filepath.Join(p.images(), name, "index.json"))
	return err == nil
}

// images is the directory in which make images stores the starter images.
func (p *Platform) images() string {
	root, err := repository()
	if err != nil {
		root = filepath.Dir(p.bin)
	}
	return filepath.Join(root, "build/images")
}

// Start runs the server until Stop, Kill or its own end, and returns when its agent is connected
// with all accelerators.
func (p *Platform) Start(flags ...string) error {
	listen, err := p.listen()
	if err != nil {
		return err
	}
	p.up.args = append([]string{
		"up", "--data", p.data, "--listen", listen, "--bin", p.bin, "--images", p.images(),
		"--mock-accelerators", strconv.Itoa(p.mock), "--log-level", "info",
		"--ca-bundle", "", // sessions have the same variables on every machine
	}, flags...)
	if p.Paths != "" {
		p.up.args = append(p.up.args, "--apps-paths", strings.TrimPrefix(p.Paths, "http://"))
	}
	for _, name := range p.made {
		p.up.args = append(p.up.args, "--fixture", name)
	}
	from := p.log.Len()
	if err := p.up.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := p.ready(ctx, from); err != nil {
		return fmt.Errorf("wait until the server is ready: %w", err)
	}
	return nil
}

// listen returns the previous address, so that clients outlive a restart.
func (p *Platform) listen() (string, error) {
	if p.URL == "" {
		return freePort("tcp")
	}
	return strings.TrimPrefix(p.URL, "http://"), nil
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
	if err := p.identify("agent"); err != nil {
		return err
	}
	return p.complete(ctx)
}

// identify reads the ids of agents, which are part of the names of links and mounts, from their
// directories.
func (p *Platform) identify(dirs ...string) error {
	p.agents = nil
	for _, dir := range dirs {
		id, err := os.ReadFile(filepath.Join(p.data, dir, "id"))
		if err != nil {
			return err
		}
		p.agents = append(p.agents, strings.TrimSpace(string(id)))
	}
	return nil
}

// complete waits for all agents with all accelerators.
func (p *Platform) complete(ctx context.Context) error {
	want := 0
	for _, n := range p.offers {
		want += n
	}
	return p.until(ctx, "the agents and their accelerators", func() bool {
		n, err := p.accelerators(ctx)
		return err == nil && n >= want && p.answers(ctx, "/readyz")
	})
}

// until polls a condition. It returns early when a server ends.
func (p *Platform) until(ctx context.Context, what string, is func() bool) error {
	for !is() {
		for _, x := range p.servers {
			if err := x.died(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
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

// firstLogin reads the first password, and creates a token with it.
func (p *Platform) firstLogin(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(p.data, "first-login.json"))
	if err != nil {
		return err
	}
	var first struct{ URL, Email, Password string }
	if err := json.Unmarshal(text, &first); err != nil {
		return fmt.Errorf("first-login.json: %w", err)
	}
	p.URL = first.URL
	return p.adopt(ctx, first.Email, first.Password)
}

// adopt logs in as the first superadmin.
func (p *Platform) adopt(ctx context.Context, email, password string) (err error) {
	p.Email, p.Password = email, password
	p.Secret("the first password", password)
	p.admin, _, err = p.login(ctx, email, password)
	return err
}

// login creates an access token, which outlives restarts, and a client with it.
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

// accelerators returns the number of usable accelerators.
func (p *Platform) accelerators(ctx context.Context) (int, error) {
	agents, err := p.admin.Agents(ctx, "")
	alive := 0
	for _, a := range agents {
		if a.Status == "ALIVE" {
			alive++
		}
	}
	if err != nil || alive != len(p.offers) {
		return -1, err
	}
	resp, err := p.admin.Raw(ctx, client.Request{Query: `{ devices(where: {not: {plugin: ""}, healthIn: [HEALTHY, DEGRADED], allocatable: true}) { totalCount } }`})
	if err != nil {
		return -1, err
	}
	var out struct{ Devices struct{ TotalCount int } }
	return out.Devices.TotalCount, errors.Join(resp.Err(), json.Unmarshal(resp.Data, &out))
}

// Change applies a change to a simulated machine.
func (p *Platform) Change(t testing.TB, machine, change string) {
	t.Helper()
	if out, err := exec.Command(p.Bin("berthd"), "fixture", "change", machine, change, "--data", p.data).CombinedOutput(); err != nil {
		t.Fatalf("berthd fixture change %s %s: %v: %s", machine, change, err, out)
	}
}

// Interrupt sends SIGINT and waits for the server's end.
func (p *Platform) Interrupt() error { return p.up.end(syscall.SIGINT) }

// Kill sends SIGKILL.
func (p *Platform) Kill() error { return p.up.Kill() }

// Close stops the server with its sessions, as berthd up --stop-sessions does. It returns what is
// left on the machine, secrets that are stored in the open, and differences between the agents and
// the database.
func (p *Platform) Close() error {
	err := p.finish()
	if err == nil {
		err = p.Interrupt()
	}
	return p.remove(err)
}

// finish ends all sessions, and then checks what is left.
func (p *Platform) finish() error {
	err := p.endSessions()
	if err == nil {
		err = p.differs()
	}
	if err == nil {
		err = p.leaked()
	}
	return err
}

// remove kills remaining processes and deletes the data.
func (p *Platform) remove(err error) error {
	err = errors.Join(err, p.killAll())
	if err == nil {
		err = p.Leftovers()
	}
	if unmount := p.closeVolumes(); unmount != nil { // mounted file systems must not be emptied
		return errors.Join(err, unmount, p.lifeline.Close())
	}
	return errors.Join(err, os.RemoveAll(p.dir), p.lifeline.Close())
}

func (p *Platform) killAll() (err error) {
	for _, x := range p.servers {
		if x.runs() {
			err = errors.Join(err, x.Kill())
		}
	}
	return err
}

// differs compares the containers of agents with the database.
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
