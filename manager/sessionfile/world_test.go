package sessionfile_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/attach"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/sessionfile"
)

// runner is the berth-runner that the tests run.
var runner string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "runner")
	if err == nil {
		runner = filepath.Join(dir, "berth-runner")
		build := exec.Command("go", "build", "-trimpath", "-o", runner, "github.com/berthhq/berth/cmd/berth-runner")
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

// machine is an agent whose kernels are this machine, with a home directory.
type machine struct {
	agentpb.UnimplementedAgentServer
	home string

	mu      sync.Mutex
	shell   string // runs instead of the runner: a container that somebody has taken over
	running []*exec.Cmd
	started int
}

func (m *machine) Exec(stream grpc.BidiStreamingServer[agentpb.ExecInput, agentpb.ExecOutput]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if got := first.GetStart().GetCommand(); !slices.Equal(got, []string{"/opt/berth/runner", "files"}) {
		return fmt.Errorf("unexpected command %q", got)
	}
	cmd := exec.CommandContext(stream.Context(), runner, "files")
	m.mu.Lock()
	if m.shell != "" {
		cmd = exec.CommandContext(stream.Context(), "sh", "-c", m.shell)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGHUP) } // as agents do
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = append(os.Environ(), "HOME="+m.home)
	in, err := cmd.StdinPipe()
	if err == nil {
		cmd.Stdout = writer(func(b []byte) error {
			return stream.Send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Stdout{Stdout: b}})
		})
		err = cmd.Start()
	}
	m.running, m.started = append(m.running, cmd), m.started+1
	m.mu.Unlock()
	if err != nil {
		return err
	}
	go func() {
		defer in.Close()
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			if _, err := in.Write(m.GetStdin()); err != nil {
				return
			}
		}
	}()
	_ = cmd.Wait()
	return stream.Send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Exit{Exit: int32(cmd.ProcessState.ExitCode())}})
}

// kill ends all commands in the kernels.
func (m *machine) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.running {
		_ = c.Process.Kill()
	}
	m.running = nil
}

func (m *machine) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started
}

// takeOver replaces the runner by a script of the container's user.
func (m *machine) takeOver(script string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shell = script
}

type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) { return len(b), w(b) }

type agents struct{ agentpb.AgentClient }

// Disrupted implements session.Agents.
func (agents) Disrupted(uuid.UUID) bool { return false }

// HasImage implements session.Agents.
func (agents) HasImage(_, _, _ string) bool { return true }

// Missing implements session.Agents.
func (agents) Missing(_, _ string) string { return "" }

// Pull implements session.Agents.
func (agents) Pull(context.Context, string, *agentpb.PullImageRequest) error { return nil }

func (a agents) RPC(name string) (agentpb.AgentClient, error) {
	if name != "machine" {
		return nil, problem.Unavailable("machine %s is not connected", name)
	}
	return a.AgentClient, nil
}

// world is a handler for a running session of a member of the domain A.
type world struct {
	*identitytest.World
	t       *testing.T
	ctx     context.Context // of the platform
	auth    *auth.Service
	machine *machine
	session *ent.Session
	url     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: identitytest.New(t), t: t, ctx: viewer.SystemContext(t.Context()), machine: &machine{home: t.TempDir()}}
	server := grpc.NewServer()
	agentpb.RegisterAgentServer(server, w.machine)
	nodes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(nodes)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(nodes.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	log, bus := slog.New(slog.DiscardHandler), event.New(nil, nil)
	policies := policy.New(policy.Config{Client: w.Client, Bus: bus})
	w.auth = auth.New(auth.Config{Client: w.Client, Bus: bus, Passwords: identitytest.Hasher(), Logger: log})
	sessions := session.New(session.Config{Client: w.Client, Bus: bus, Policies: policies, Logger: log, Agents: agents{agentpb.NewAgentClient(conn)}})
	idles := idle.New(idle.Config{Client: w.Client, Bus: bus, Policies: policies, Logger: log, Sessions: sessions})
	trail := audit.New(audit.Config{Client: w.Client, Logger: log})
	doors := &attach.Handler{Client: w.Client, Sessions: sessions, Idle: idles, Revoked: w.auth, Audit: trail, Logger: log}
	files := &sessionfile.Handler{Find: doors.Find, Revoked: w.auth, Idle: idles, Audit: trail, Metrics: sessionfile.NewMetrics(prometheus.NewRegistry()), Logger: log}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = w.auth.Run(ctx) })
	t.Cleanup(func() { cancel(); parts.Wait() })
	mux := http.NewServeMux()
	files.Register(mux)
	srv := httptest.NewServer(w.auth.Authenticate(mux))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	w.session = w.running()
	return w
}

func (w *world) running() *ent.Session {
	slots := resource.Slots{"cpu": 1000}
	group := w.Client.ResourceGroup.Create().SetName("default").SaveX(w.ctx)
	reg := w.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(w.ctx)
	image := w.Client.Image.Create().SetReference("registry.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(w.ctx)
	node := w.Client.Agent.Create().SetName("machine").SetResourceGroup(group).SaveX(w.ctx)
	s := w.Client.Session.Create().SetName("train").SetType("interactive").SetStatus(lifecycle.Running).SetStartedAt(time.Now()).SetSlots(slots).
		SetDomain(w.A.Domain).SetProject(w.A.Project).SetOwner(w.A.Member).SetResourceGroup(group).SetImage(image).SaveX(w.ctx)
	w.Client.Kernel.Create().SetSession(s).SetSlots(slots).SetStatus(lifecycle.Running).SetAgent(node).SetIndex(0).SetHostname("main").
		SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID).ExecX(w.ctx)
	return s
}

// person is a client with a token of a user.
type person struct {
	w     *world
	token string
	id    uuid.UUID // of the token
}

func (w *world) as(u *ent.User) *person {
	w.t.Helper()
	made, err := w.auth.CreateAccessToken(w.As(w.t, u), auth.CreateAccessTokenInput{Name: uuid.NewString()})
	if err != nil {
		w.t.Fatal(err)
	}
	return &person{w, *made.Secret, made.AccessToken.ID}
}

// request sends a request below the files of the session.
func (p *person) request(method, path, body string, header ...string) (*http.Response, error) {
	return p.send(method, path, strings.NewReader(body), int64(len(body)), header...)
}

func (p *person) send(method, path string, body io.Reader, size int64, header ...string) (*http.Response, error) {
	p.w.t.Helper()
	r, err := http.NewRequestWithContext(p.w.t.Context(), method, p.w.url+"/sessions/"+p.w.session.ID.String()+"/files"+path, body)
	if err != nil {
		p.w.t.Fatal(err)
	}
	r.ContentLength = size
	r.Header.Set("Authorization", "Bearer "+p.token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return http.DefaultClient.Do(r)
}

// do is request for a body that fits into memory.
func (p *person) do(method, path, body string, header ...string) (int, string, http.Header) {
	p.w.t.Helper()
	resp, err := p.request(method, path, body, header...)
	if err != nil {
		p.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// rows are the rows of the audit log with an action: results and messages.
func (w *world) rows(action string) []string {
	list := []string{}
	for _, e := range w.Client.AuditEntry.Query().Where(auditentry.Action(action)).Order(ent.Asc(auditentry.FieldID)).AllX(w.ctx) {
		list = append(list, strings.TrimSpace(e.Result+" "+e.Message))
	}
	return list
}
