package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/internal/modelmock"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/web"
)

const enginePort = 8000

// site is a cluster with a machine whose containers are engines of the model "m", and a gateway.
type site struct {
	*clustertest.Cluster
	t   *testing.T
	url string // of the gateway
	key string

	engine modelmock.Config
	more   func(*gateway.Config)
}

func newSite(t *testing.T) *site {
	s := &site{Cluster: clustertest.New(t, 0), t: t, engine: modelmock.Config{Model: "m"}}
	s.join()
	s.serve()
	var made struct{ CreateDeploymentKey struct{ Secret string } }
	s.Member.Must(t, `mutation { createDeploymentKey(input: {name: "test"}) { secret } }`, nil, &made)
	s.key = made.CreateDeploymentKey.Secret
	return s
}

// join adds the machine.
func (s *site) join() {
	n := &clustertest.Node{Name: "a", Dir: s.t.TempDir(), Network: clustertest.NewFakeNetwork(0), Host: fake.NewHost(clustertest.PulledImage())}
	s.Nodes = append(s.Nodes, n)
	n.Network.ServeHTTP(s.t, modelmock.New(s.engine))
	s.Join(s.t, n, s.Manager)
}

// serve starts the gateway, and returns a function that stops it.
func (s *site) serve() (stop func()) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Fatal(err)
		}
		return l
	}
	web := listen()
	s.url = "http://" + web.Addr().String()
	cfg := gateway.Config{
		Stores: s.Manager.Stores(), Cluster: listen(), HTTP: web, ModelsURL: s.url + "/v1", PageURL: s.Manager.URL,
		Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}
	if s.more != nil {
		s.more(&cfg)
	}
	gw, err := gateway.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := gw.Run(ctx); err != nil {
			s.t.Errorf("gateway: %v", err)
		}
	})
	stop = func() { cancel(); run.Wait() }
	s.t.Cleanup(stop)
	return stop
}

func (s *site) revision() managertest.Vars {
	return managertest.Vars{"request": clustertest.SessionInput(nil, "sleep", "600"), "port": enginePort, "health": "/health", "interval": 1}
}

// must runs a mutation of deployments, and returns the deployment's ID.
func (s *site) must(mutation string, in managertest.Vars) uuid.UUID {
	s.t.Helper()
	kind := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input"
	got := map[string]struct{ Deployment struct{ ID uuid.UUID } }{}
	s.Member.Must(s.t, `mutation($in: `+kind+`!) { `+mutation+`(input: $in) { deployment { id } } }`, managertest.Vars{"in": in}, &got)
	return got[mutation].Deployment.ID
}

func (s *site) await(id uuid.UUID, what string, ok func(*ent.Deployment) bool) {
	s.t.Helper()
	managertest.Eventually(s.t, what, func() bool { return ok(s.Client.Deployment.GetX(s.System(s.t), id)) })
}

func (s *site) ask(more string) (int, string) {
	r, _ := http.NewRequest(http.MethodPost, s.url+"/v1/completions", strings.NewReader(`{"model":"m","prompt":"one two three","max_tokens":3`+more+`}`))
	r.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// allowed checks that the page's policy allows requests to the gateway.
func (s *site) allowed() {
	s.t.Helper()
	if !web.Built() {
		return // a page that says so has no script
	}
	managertest.Eventually(s.t, "the page may send requests to models", func() bool {
		resp, err := http.Get(s.Manager.URL)
		if err != nil {
			return false
		}
		resp.Body.Close()
		_, policy, _ := strings.Cut(resp.Header.Get("Content-Security-Policy"), "connect-src")
		policy, _, _ = strings.Cut(policy, ";")
		return strings.Contains(policy, s.url)
	})
}

// A request through the whole platform: the leader starts the replica that a request waits for, changes revisions without a
// failed request, lets the deployment sleep, and a request wakes it.
func TestModelsThroughThePlatform(t *testing.T) {
	s := newSite(t)
	id := s.must("createDeployment", managertest.Vars{"name": "m", "revision": s.revision(), "scaling": managertest.Vars{"min": 0, "zeroAfter": 10}})
	s.allowed()
	if status, text := s.ask(""); status != http.StatusOK || !strings.Contains(text, "one two three") {
		t.Fatalf("the first request: %d %s", status, text)
	}
	s.await(id, "it serves", func(d *ent.Deployment) bool { return d.Status == entdeployment.StatusServing })

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for _, more := range []string{"", `,"stream":true`} {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if status, text := s.ask(more); status != http.StatusOK || more != "" && !strings.Contains(text, "[DONE]") {
					t.Errorf("request %d during the change: %d %s", n, status, text)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	s.must("addDeploymentRevision", managertest.Vars{"deployment": id, "revision": s.revision()})
	s.await(id, "revision 2 is current, and revision 1 has no replica", func(d *ent.Deployment) bool {
		all := d.QueryReplicas().AllX(s.System(t))
		for _, r := range all {
			if r.Revision == 1 && r.EndedAt == nil {
				return false
			}
		}
		return d.Current == 2
	})
	stop()
	clients.Wait()

	s.await(id, "it sleeps", func(d *ent.Deployment) bool { return d.Status == entdeployment.StatusAsleep })
	if status, text := s.ask(`,"stream":true`); status != http.StatusOK || !strings.Contains(text, ": ") || !strings.Contains(text, "[DONE]") {
		t.Errorf("the request that wakes it: %d %s", status, text)
	}
	s.must("deleteDeployment", managertest.Vars{"id": id})
	s.await(id, "it has ended", func(d *ent.Deployment) bool { return d.Status == entdeployment.StatusEnded })
	if status, text := s.ask(""); status != http.StatusNotFound {
		t.Errorf("after the end: %d %s", status, text)
	}
	var used struct {
		DeploymentKeys struct {
			Edges []struct {
				Node struct{ UsedRequests, UsedTokens int }
			}
		}
	}
	managertest.Eventually(t, "the usage of the key is stored", func() bool {
		s.Member.Must(t, `{ deploymentKeys { edges { node { usedRequests usedTokens } } } }`, nil, &used)
		n := used.DeploymentKeys.Edges[0].Node
		return n.UsedRequests >= 4 && n.UsedTokens == 6*n.UsedRequests
	})
}
