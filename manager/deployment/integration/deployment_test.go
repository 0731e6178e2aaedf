package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentevent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	entsession "github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/managertest"
)

// Ports of the engines of the tests.
const (
	healthy = 8000
	sick    = 8001 // answers every check with an error
)

// site is a cluster whose containers answer health checks.
type site struct {
	*clustertest.Cluster
	broken atomic.Bool  // the healthy port fails, too
	queue  atomic.Int64 // a metric of the engines
}

func newSite(t *testing.T) *site {
	s := &site{Cluster: clustertest.New(t, 0)}
	s.join(t, s.Manager)
	return s
}

// join adds a machine that is connected to managers.
func (s *site) join(t *testing.T, managers ...*managertest.Manager) {
	t.Helper()
	n := &clustertest.Node{Name: "a", Dir: t.TempDir(), Network: clustertest.NewFakeNetwork(0), Host: fake.NewHost(clustertest.PulledImage())}
	s.Nodes = append(s.Nodes, n)
	n.Network.ServeHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if r.URL.Path == "/metrics" {
			fmt.Fprintf(w, "# TYPE queue gauge\nqueue{kind=\"a\"} %d\n", s.queue.Load())
		}
	}), healthy)
	s.Join(t, n, managers...)
}

func revision(port int, more managertest.Vars) managertest.Vars {
	in := managertest.Vars{"request": clustertest.SessionInput(nil, "sleep", "600"), "port": port, "health": "/health", "interval": 1}
	for k, v := range more {
		in[k] = v
	}
	return in
}

func (s *site) deploy(t *testing.T, name string, more managertest.Vars) uuid.UUID {
	t.Helper()
	in := managertest.Vars{"name": name, "revision": revision(healthy, nil)}
	for k, v := range more {
		in[k] = v
	}
	var got struct {
		CreateDeployment struct{ Deployment struct{ ID uuid.UUID } }
	}
	s.Member.Must(t, `mutation($in: CreateDeploymentInput!) { createDeployment(input: $in) { deployment { id } } }`, managertest.Vars{"in": in}, &got)
	return got.CreateDeployment.Deployment.ID
}

func (s *site) change(t *testing.T, mutation string, in managertest.Vars) managertest.Errors {
	t.Helper()
	kind := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input"
	return s.Member.Ask(t, `mutation($in: `+kind+`!) { `+mutation+`(input: $in) { deployment { id } } }`, managertest.Vars{"in": in}, nil)
}

func (s *site) must(t *testing.T, mutation string, in managertest.Vars) {
	t.Helper()
	if errs := s.change(t, mutation, in); len(errs) > 0 {
		t.Fatal(errs)
	}
}

func (s *site) await(t *testing.T, id uuid.UUID, want entdeployment.Status) *ent.Deployment {
	t.Helper()
	var d *ent.Deployment
	managertest.Eventually(t, "the deployment is "+string(want), func() bool {
		d = s.Client.Deployment.GetX(s.System(t), id)
		return d.Status == want
	})
	return d
}

// live returns the replicas in a phase.
func (s *site) live(t *testing.T, id uuid.UUID, phase deploymentreplica.Phase) []*ent.DeploymentReplica {
	t.Helper()
	return s.Client.DeploymentReplica.Query().Where(deploymentreplica.DeploymentID(id), deploymentreplica.PhaseEQ(phase)).
		Order(deploymentreplica.ByCreatedAt()).WithSession().AllX(s.System(t))
}

func (s *site) awaitReady(t *testing.T, id uuid.UUID, n int) {
	t.Helper()
	managertest.Eventually(t, "replicas are ready, and no others are left", func() bool {
		all := s.Client.DeploymentReplica.Query().Where(deploymentreplica.DeploymentID(id), deploymentreplica.EndedAtIsNil()).AllX(s.System(t))
		ready := 0
		for _, r := range all {
			if r.Phase == deploymentreplica.PhaseReady {
				ready++
			}
		}
		return ready == n && len(all) == n
	})
}

func (s *site) events(t *testing.T, id uuid.UUID, kind deploymentevent.Kind) []*ent.DeploymentEvent {
	t.Helper()
	return s.Client.DeploymentEvent.Query().Where(deploymentevent.DeploymentID(id), deploymentevent.KindEQ(kind)).Order(deploymentevent.ByCreatedAt()).AllX(s.System(t))
}

// A deployment keeps its replicas, whatever happens to them, and ends with them.
func TestReplicas(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", managertest.Vars{"replicas": 2, "scaling": managertest.Vars{"max": 3}})
	s.await(t, id, entdeployment.StatusServing)
	first := s.live(t, id, deploymentreplica.PhaseReady)
	if len(first) != 2 || first[0].Edges.Session.Type != entsession.TypeInference || first[0].Edges.Session.OwnerID != s.A.Member.ID {
		t.Fatalf("the replicas are %v", first)
	}
	if errs := s.Terminate(t, first[0].Edges.Session.ID, true); len(errs) > 0 {
		t.Fatal(errs)
	}
	managertest.Eventually(t, "the failure is recorded", func() bool { return len(s.events(t, id, deploymentevent.KindReplicaFailed)) == 1 })
	s.awaitReady(t, id, 2)
	s.must(t, "updateDeployment", managertest.Vars{"id": id, "replicas": 3})
	s.awaitReady(t, id, 3)
	s.must(t, "updateDeployment", managertest.Vars{"id": id, "replicas": 1})
	s.awaitReady(t, id, 1)
	if errs := s.change(t, "updateDeployment", managertest.Vars{"id": id, "replicas": 4}); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("more replicas than max: %v", errs)
	}
	managertest.Eventually(t, "the history of a session says why it ended", func() bool {
		return s.Client.SessionEvent.Query().Where(sessionevent.MessageContains("deployment m no longer needs the replica")).ExistX(s.System(t))
	})
	const remove = `mutation($id: ID!) { deleteImage(input: {id: $id}) { id } }`
	root := s.Manager.As(t, s.Superadmin)
	if errs := root.Ask(t, remove, managertest.Vars{"id": s.Image.ID}, nil); errs.Code() != "FAILED_PRECONDITION" || !strings.Contains(errs.String(), "deployment m uses the image") {
		t.Errorf("delete the image of a deployment: %s", errs)
	}
	s.must(t, "deleteDeployment", managertest.Vars{"id": id})
	s.await(t, id, entdeployment.StatusEnded)
	open := s.Client.Session.Query().Where(entsession.TerminatedAtIsNil()).CountX(s.System(t))
	if open > 0 {
		t.Errorf("%d sessions remain", open)
	}
}

// A new revision replaces the old one. One that never becomes ready is given up, and the old one keeps serving.
func TestRevisions(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", nil)
	s.await(t, id, entdeployment.StatusServing)
	s.must(t, "addDeploymentRevision", managertest.Vars{"deployment": id, "revision": revision(healthy, managertest.Vars{"comment": "better"})})
	managertest.Eventually(t, "revision 2 is current", func() bool { return s.Client.Deployment.GetX(s.System(t), id).Current == 2 })
	s.awaitReady(t, id, 1)
	s.must(t, "addDeploymentRevision", managertest.Vars{"deployment": id, "revision": revision(sick, managertest.Vars{"startTimeout": 1})})
	managertest.Eventually(t, "revision 3 is given up", func() bool {
		if len(s.live(t, id, deploymentreplica.PhaseReady)) == 0 {
			t.Fatal("no replica serves during the change")
		}
		return len(s.events(t, id, deploymentevent.KindRolledBack)) == 1
	})
	d := s.await(t, id, entdeployment.StatusServing)
	if why := s.events(t, id, deploymentevent.KindRolledBack)[0].Message; d.Current != 2 || d.Target != 2 || !strings.Contains(why, "was not ready within 1s") {
		t.Errorf("after the rollback: current %d, target %d, %q", d.Current, d.Target, why)
	}
	s.must(t, "rollBackDeployment", managertest.Vars{"id": id})
	managertest.Eventually(t, "revision 1 is current again", func() bool { return s.Client.Deployment.GetX(s.System(t), id).Current == 1 })
	s.awaitReady(t, id, 1)
}

// A replica whose engine fails its checks is replaced.
func TestSickReplica(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", managertest.Vars{"revision": revision(healthy, managertest.Vars{"retries": 1})})
	s.await(t, id, entdeployment.StatusServing)
	was := s.live(t, id, deploymentreplica.PhaseReady)[0].ID
	s.broken.Store(true)
	managertest.Eventually(t, "the failure is recorded", func() bool { return len(s.events(t, id, deploymentevent.KindReplicaFailed)) > 0 })
	s.broken.Store(false)
	s.awaitReady(t, id, 1)
	if now := s.live(t, id, deploymentreplica.PhaseReady)[0].ID; now == was {
		t.Error("the failed replica serves again")
	}
}

// Without requests, a deployment with a minimum of 0 has no replica; a request that waits at a gateway starts one.
func TestScaleToZero(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", managertest.Vars{"scaling": managertest.Vars{"min": 0, "zeroAfter": 10}})
	s.await(t, id, entdeployment.StatusServing)
	s.await(t, id, entdeployment.StatusAsleep)
	loads := &load.Store{Redis: s.Redis(t)}
	report := func(waiting int) {
		t.Helper()
		if err := loads.Put(t.Context(), "g", id, load.Report{Version: 1, Waiting: waiting, LastRequest: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	managertest.Eventually(t, "a replica starts", func() bool {
		report(2)
		return s.Client.Deployment.GetX(s.System(t), id).Wanted == 1
	})
	report(0)
	s.await(t, id, entdeployment.StatusServing)
	scaled := s.events(t, id, deploymentevent.KindScaled)
	if last := scaled[len(scaled)-1]; !strings.Contains(last.Message, "wait for a replica: 2") || *last.ReplicasAfter != 1 {
		t.Errorf("the decision is %v", last)
	}
}

// The number of replicas follows the load that the gateways report, within the bounds.
func TestScalesWithLoad(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", managertest.Vars{"scaling": managertest.Vars{"max": 3, "upAfter": 0, "downAfter": 0,
		"targets": []managertest.Vars{{"metric": "requests", "perReplica": 4}}}})
	s.awaitReady(t, id, 1)
	loads := &load.Store{Redis: s.Redis(t)}
	under := func(requests, replicas int) {
		t.Helper()
		managertest.Eventually(t, "the number of replicas follows", func() bool {
			r := load.Report{Version: s.Client.Deployment.GetX(s.System(t), id).Version, LastRequest: time.Now(), Replicas: map[uuid.UUID]load.Replica{uuid.New(): {InFlight: requests}}}
			if err := loads.Put(t.Context(), "g", id, r); err != nil {
				t.Fatal(err)
			}
			return len(s.live(t, id, deploymentreplica.PhaseReady)) == replicas
		})
	}
	news := s.Bus(t).Subscribe(t.Context(), event.Deployment)
	under(100, 3)
	under(8, 2)
	managertest.Eventually(t, "the leader announces the load", func() bool {
		for range len(news) {
			if e := <-news; e.ID == id && e.By == event.BySamples {
				return true
			}
		}
		return false
	})
	under(0, 1)
	var up *ent.DeploymentEvent
	for _, e := range s.events(t, id, deploymentevent.KindScaled) {
		if *e.ReplicasAfter == 3 {
			up = e
		}
	}
	if up == nil || up.Metric != "requests" || *up.Value != 100 || *up.Limit != 4 {
		t.Errorf("the decision is %v", up)
	}
}

// An expression over the metrics of the engines decides, and its value is in the history. One that is not valid is refused.
func TestScalesWithAnExpression(t *testing.T) {
	s := newSite(t)
	s.queue.Store(10)
	rule := func(metric string) managertest.Vars {
		return managertest.Vars{"max": 3, "upAfter": 0, "downAfter": 0, "targets": []managertest.Vars{{"metric": metric, "perReplica": 4, "sum": true}}}
	}
	const metric = `promql:max(max_over_time(queue{kind="a"}[1m]))`
	id := s.deploy(t, "m", managertest.Vars{"revision": revision(healthy, managertest.Vars{"metrics": "/metrics"}), "scaling": rule(metric)})
	s.awaitReady(t, id, 3)
	if up := s.events(t, id, deploymentevent.KindScaled); len(up) != 1 || up[0].Metric != metric || *up[0].Value != 10 || *up[0].Limit != 4 {
		t.Errorf("the decisions are %v", up)
	}
	errs := s.change(t, "updateDeployment", managertest.Vars{"id": id, "scaling": rule("promql:sum(rate(queue[5m])")})
	if fieldOf(errs) != "scaling.targets[0].metric" || !strings.Contains(errs.String(), "at character") {
		t.Errorf("an expression that is not valid: %s", errs)
	}
}

// A manager that is killed in the middle of a change leaves nothing that the next one does not finish.
func TestKilledManager(t *testing.T) {
	s := &site{Cluster: clustertest.New(t, 0)}
	second := s.Start(t)
	s.join(t, s.Manager, second)
	managertest.Eventually(t, "the second manager reaches the machine", func() bool { return second.Reaches("a") })
	id := s.deploy(t, "m", managertest.Vars{"replicas": 3, "scaling": managertest.Vars{"max": 3}})
	s.awaitReady(t, id, 3)
	s.must(t, "addDeploymentRevision", managertest.Vars{"deployment": id, "revision": revision(healthy, nil)})
	managertest.Eventually(t, "the change has begun", func() bool {
		return s.Client.DeploymentReplica.Query().Where(deploymentreplica.DeploymentID(id), deploymentreplica.Revision(2)).ExistX(s.System(t))
	})
	s.Manager.Kill()
	managertest.Eventually(t, "revision 2 is current", func() bool { return s.Client.Deployment.GetX(s.System(t), id).Current == 2 })
	s.awaitReady(t, id, 3)
	running := s.Client.Session.Query().Where(entsession.StatusEQ(lifecycle.Running)).CountX(s.System(t))
	if running != 3 {
		t.Errorf("%d sessions run", running)
	}
}
