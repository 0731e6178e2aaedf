package serving_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/gateway/serving"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/modelmock"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/deployment/key"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// machine is an agent whose kernels are this process: the ports of a kernel are those of the loopback interface.
type machine struct{ ctx context.Context }

// Streams implements serving.Agents.
func (m machine) Streams(agent string) (portstream.Opener, error) {
	if agent != "machine" {
		return nil, fmt.Errorf("machine %s is not connected: %w", agent, errdefs.ErrUnavailable)
	}
	return m, nil
}

// Open implements portstream.Opener.
func (m machine) Open(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go m.serve(theirs)
	return ours, nil
}

func (m machine) serve(stream net.Conn) {
	call, err := portstream.Accept(stream)
	if err != nil {
		return
	}
	call.Connect(m.ctx, func(ctx context.Context, _ string, port uint16) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, errdefs.ErrUnavailable)
		}
		return c, nil
	})
}

// world is a gateway's part for models, in front of real stores.
type world struct {
	*identitytest.World
	t       testing.TB
	ctx     context.Context // of the system
	redis   *redis.Client
	bus     *event.Bus
	keys    *key.Service
	loads   *load.Store
	metrics *prometheus.Registry
	service *serving.Service
	url     string
	stop    func() // ends the service and waits for it

	group *ent.ResourceGroup
	image *ent.Image
	agent *ent.Agent
}

func newWorld(t testing.TB) *world {
	t.Helper()
	opt, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: identitytest.New(t), t: t, ctx: viewer.SystemContext(t.Context()), redis: redis.NewClient(opt)}
	t.Cleanup(func() { w.redis.Close() })
	log := slog.New(slog.DiscardHandler)
	w.bus = event.New(w.redis, log)
	w.keys = key.New(key.Config{Client: w.Client, Bus: w.bus})
	w.loads = &load.Store{Redis: w.redis}
	w.group = w.Client.ResourceGroup.Create().SetName("default").SaveX(w.ctx)
	reg := w.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(w.ctx)
	w.image = w.Client.Image.Create().SetReference("registry.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(w.ctx)
	w.agent = w.Client.Agent.Create().SetName("machine").SetResourceGroup(w.group).SaveX(w.ctx)
	w.serve()
	return w
}

// serve starts the service.
func (w *world) serve() {
	log := slog.New(slog.DiscardHandler)
	users := auth.New(auth.Config{Client: w.Client, Bus: w.bus, Passwords: identitytest.Hasher(), Logger: log})
	w.metrics = prometheus.NewRegistry()
	w.service = serving.New(serving.Config{
		Client: w.Client, Bus: w.bus, Redis: w.redis, Users: users, Agents: machine{w.t.Context()}, Gateway: "gateway-1", Registry: w.metrics, Logger: log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = w.service.Run(ctx) })
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.service.ServeHTTP(rw, users.Addressed(r)) }))
	w.url = srv.URL
	w.stop = sync.OnceFunc(func() {
		srv.Close()
		cancel()
		run.Wait()
	})
	w.t.Cleanup(w.stop)
}

// deploy creates a deployment of the member of domain A without replicas.
func (w *world) deploy(name string, change func(*ent.DeploymentCreate)) *ent.Deployment {
	w.t.Helper()
	return w.deployIn(w.A, name, change)
}

func (w *world) deployIn(in identitytest.Domain, name string, change func(*ent.DeploymentCreate)) *ent.Deployment {
	w.t.Helper()
	c := w.Client.Deployment.Create().SetName(name).SetDomainID(in.ID).SetProject(in.Project).SetOwner(in.Member).
		SetStrategy(json.RawMessage("{}")).SetScaling(json.RawMessage("{}")).SetProgress(json.RawMessage("{}")).
		SetWanted(1).SetCurrent(1).SetTarget(1).SetWeights(map[int]int{1: 100})
	if change != nil {
		change(c)
	}
	return c.SaveX(w.ctx)
}

// revision creates a revision whose engine is at an address of the loopback interface.
func (w *world) revision(d *ent.Deployment, number int, engine string) {
	w.t.Helper()
	u, err := url.Parse(engine)
	if err != nil {
		w.t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		w.t.Fatal(err)
	}
	text := json.RawMessage(fmt.Sprintf(`{"Port":%d}`, port))
	w.Client.DeploymentRevision.Create().SetNumber(number).SetVariant("custom").SetRequest(json.RawMessage("{}")).SetEngine(text).SetImage("i:1").
		SetDeploymentID(d.ID).ExecX(w.ctx)
}

// replica creates a replica of a revision with a running session.
func (w *world) replica(d *ent.Deployment, revision int, phase deploymentreplica.Phase) *ent.DeploymentReplica {
	w.t.Helper()
	slots := resource.Slots{"cpu": 1000}
	s := w.Client.Session.Create().SetName(fmt.Sprintf("r-%s", uuid.NewString()[:8])).SetType("interactive").SetStatus(lifecycle.Running).SetStartedAt(time.Now()).
		SetSlots(slots).SetDomainID(d.DomainID).SetProjectID(d.ProjectID).SetOwnerID(d.OwnerID).SetResourceGroup(w.group).SetImage(w.image).SaveX(w.ctx)
	w.Client.Kernel.Create().SetSession(s).SetSlots(slots).SetStatus(lifecycle.Running).SetAgent(w.agent).SetHostname("main").
		SetDomainID(d.DomainID).SetProjectID(d.ProjectID).SetOwnerID(d.OwnerID).ExecX(w.ctx)
	return w.Client.DeploymentReplica.Create().SetDeploymentID(d.ID).SetRevision(revision).SetPhase(phase).SetSessionID(s.ID).SaveX(w.ctx)
}

// engine starts an engine for a model.
func (w *world) engine(cfg modelmock.Config) (e *modelmock.Engine, address string) {
	e = modelmock.New(cfg)
	srv := httptest.NewServer(e)
	w.t.Cleanup(srv.Close)
	return e, srv.URL
}

// model creates a deployment with one ready replica, and returns the engine's address.
func (w *world) model(name string, change func(*ent.DeploymentCreate)) *ent.Deployment {
	w.t.Helper()
	_, at := w.engine(modelmock.Config{Model: name})
	d := w.deploy(name, change)
	w.revision(d, 1, at)
	w.replica(d, 1, deploymentreplica.PhaseReady)
	return d
}

// changed increments the version of a deployment, and publishes the event, as the leader does.
func (w *world) changed(d *ent.Deployment, change func(*ent.DeploymentUpdateOne)) {
	w.t.Helper()
	up := w.Client.Deployment.UpdateOneID(d.ID).AddVersion(1)
	if change != nil {
		change(up)
	}
	up.ExecX(w.ctx)
	w.bus.Publish(w.ctx, event.Event{Topic: event.Deployment, ID: d.ID})
}

// key creates a key of a user.
func (w *world) key(u *ent.User, in key.CreateDeploymentKeyInput) (row *ent.DeploymentKey, secret string) {
	w.t.Helper()
	if in.Name == "" {
		in.Name = "test"
	}
	made, err := w.keys.CreateDeploymentKey(w.As(w.t, u), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Key, made.Secret
}

func (w *world) request(method, path, secret, body string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// ask sends a prompt to a model, and returns the status and the answer.
func (w *world) ask(secret, model string) (int, string) {
	w.t.Helper()
	return text(w.t, w.request(http.MethodPost, "/v1/completions", secret, fmt.Sprintf(`{"model":%q,"prompt":"one two three","max_tokens":4}`, model)))
}

func text(t testing.TB, resp *http.Response) (int, string) {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// expect asks a model and compares the status and a part of the answer.
func (w *world) expect(what, secret, model string, status int, part string) {
	w.t.Helper()
	if got, answer := w.ask(secret, model); got != status || !strings.Contains(answer, part) {
		w.t.Errorf("%s: %d %s, want %d %s", what, got, answer, status, part)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not: " + what)
		}
	}
}
