package serving_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/modelmock"
	"github.com/berthhq/berth/manager/deployment/key"
	"github.com/berthhq/berth/manager/deployment/load"
)

// read returns what gateways report about a deployment.
func (w *world) read(d *ent.Deployment) load.Total {
	w.t.Helper()
	all, err := w.loads.Read(w.ctx, d.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return all[d.ID]
}

// A request for a deployment without a replica makes the leader look at once, waits, shows the progress, and is answered.
func TestFromZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, at := w.engine(modelmock.Config{Model: "m"})
	d := w.deploy("m", func(c *ent.DeploymentCreate) { c.SetWanted(0).SetStatus(deployment.StatusAsleep) })
	w.revision(d, 1, at)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	events := w.bus.Subscribe(t.Context(), event.Deployment)
	answer := make(chan string, 1)
	lines := make(chan string, 1000)
	go func() {
		resp := w.request(http.MethodPost, "/v1/completions", secret, `{"model":"m","prompt":"one two three","stream":true}`)
		all := ""
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			lines <- s.Text()
			all += s.Text()
		}
		answer <- all
	}()
	select {
	case e := <-events:
		if e.ID != d.ID {
			t.Errorf("an event about %s, want %s", e.ID, d.ID)
		}
	case <-time.After(time.Minute):
		t.Fatal("no event")
	}
	eventually(t, "the report says that a request waits", func() bool { return w.read(d).Waiting == 1 })
	comment := func(want string) {
		t.Helper()
		for end := time.After(time.Minute); ; {
			select {
			case line := <-lines:
				if strings.HasPrefix(line, ": ") && strings.Contains(line, want) {
					return
				}
			case <-end:
				t.Fatalf("no comment %q", want)
			}
		}
	}
	r := w.replica(d, 1, deploymentreplica.PhaseStarting)
	w.changed(d, func(up *ent.DeploymentUpdateOne) { up.SetWanted(1) })
	comment("replica 1 of 1: the engine starts")
	r.Update().SetMessage("loading weights").ExecX(w.ctx)
	w.changed(d, nil)
	comment("replica 1 of 1: loading weights")
	r.Update().SetPhase(deploymentreplica.PhaseReady).ExecX(w.ctx)
	w.changed(d, nil)
	if all := <-answer; !strings.Contains(all, "[DONE]") {
		t.Errorf("the stream: %s", all)
	}
	eventually(t, "no request waits", func() bool { return w.read(d).Waiting == 0 })
}

// Requests that wait end with the deployment.
func TestWaitForADeploymentThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("m", nil)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	status := make(chan int, 1)
	go func() {
		code, _ := w.ask(secret, "m")
		status <- code
	}()
	eventually(t, "a request waits", func() bool { return w.read(d).Waiting == 1 })
	w.changed(d, func(up *ent.DeploymentUpdateOne) { up.SetStatus(deployment.StatusEnding) })
	if code := <-status; code != http.StatusNotFound {
		t.Errorf("the request that waited: %d, want 404", code)
	}
	w.expect("a later request", secret, "m", 404, "model_not_found")
	eventually(t, "the gateway has read that it ends", func() bool { return w.read(d).Oldest == 2 })
}

// Shares of revisions decide who gets requests, however many replicas divide them.
func TestSharesOfRevisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, first := w.engine(modelmock.Config{Model: "m"})
	_, second := w.engine(modelmock.Config{Model: "m"})
	d := w.deploy("m", func(c *ent.DeploymentCreate) { c.SetWeights(map[int]int{1: 100, 2: 0}) })
	w.revision(d, 1, first)
	w.revision(d, 2, second)
	old := w.replica(d, 1, deploymentreplica.PhaseReady)
	fresh := map[string]bool{}
	for range 3 {
		fresh[w.replica(d, 2, deploymentreplica.PhaseReady).ID.String()] = true
	}
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	by := func() string {
		resp := w.request(http.MethodPost, "/v1/completions", secret, fmt.Sprintf(`{"model":"m","prompt":%q}`, uuid.NewString()))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Header.Get("Berth-Replica")
	}
	for range 20 {
		if got := by(); got != old.ID.String() {
			t.Fatalf("a request at %s, which has no share", got)
		}
	}
	w.changed(d, func(up *ent.DeploymentUpdateOne) { up.SetWeights(map[int]int{1: 50, 2: 50}) })
	eventually(t, "the gateway has read the shares", func() bool { return w.read(d).Oldest == 2 })
	counts := map[string]int{}
	for range 300 {
		counts[by()]++
	}
	if n := counts[old.ID.String()]; n < 90 || n > 210 {
		t.Errorf("half of the share: %d of 300 requests", n)
	}
	for id := range fresh {
		if counts[id] == 0 {
			t.Errorf("replica %s has a share and got no request: %v", id, counts)
		}
	}
	w.changed(d, func(up *ent.DeploymentUpdateOne) { up.SetWeights(map[int]int{2: 100}) })
	eventually(t, "the gateway has read the shares", func() bool { return w.read(d).Oldest == 3 })
	if got := by(); !fresh[got] {
		t.Errorf("a request at the old revision")
	}
}

// A replica that is drained gets no request after the report says so, and its streams continue to their end.
func TestDrainedReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "stream") {
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprint(rw, `{}`)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "data: {}\n\n")
		_ = http.NewResponseController(rw).Flush()
		<-end
		fmt.Fprint(rw, "data: [DONE]\n\n")
	}))
	defer engine.Close()
	d := w.deploy("m", nil)
	w.revision(d, 1, engine.URL)
	first := w.replica(d, 1, deploymentreplica.PhaseReady)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	resp := w.request(http.MethodPost, "/v1/completions", secret, `{"model":"m","prompt":"one","max_tokens":40,"stream":true}`)
	if got := resp.Header.Get("Berth-Replica"); got != first.ID.String() {
		t.Fatalf("replica %s", got)
	}
	eventually(t, "the report has the stream", func() bool { return w.read(d).Replicas[first.ID].InFlight == 1 })
	second := w.replica(d, 1, deploymentreplica.PhaseReady)
	first.Update().SetPhase(deploymentreplica.PhaseDraining).SetDrained(2).ExecX(w.ctx)
	w.changed(d, nil)
	eventually(t, "the gateway has read it", func() bool { return w.read(d).Oldest >= 2 })
	if now := w.read(d); now.Replicas[first.ID].InFlight != 1 {
		t.Errorf("the report lost the stream: %+v", now)
	}
	for range 5 {
		other := w.request(http.MethodPost, "/v1/completions", secret, `{"model":"m","prompt":"one","max_tokens":1}`)
		if got := other.Header.Get("Berth-Replica"); got != second.ID.String() {
			t.Errorf("a request at %s, want %s", got, second.ID)
		}
	}
	close(end)
	if status, all := text(t, resp); status != 200 || !strings.Contains(all, "[DONE]") {
		t.Errorf("the stream ended with %d %s", status, all[max(0, len(all)-100):])
	}
	eventually(t, "the stream is over", func() bool { return w.read(d).Replicas[first.ID].InFlight == 0 })
}

// Reports have what replicas did, and a gateway that ends takes its reports with it.
func TestReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.model("m", nil)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	for range 3 {
		w.expect("a request", secret, "m", 200, "one")
	}
	var sum load.Window
	eventually(t, "the requests are in the report", func() bool {
		sum = w.read(d).All(1)
		return sum.Requests == 3
	})
	if sum.Prompt != 9 || sum.Completion != 12 || sum.Errors != 0 || sum.Seconds <= 0 || sum.Seconds > 60 {
		t.Errorf("the window %+v", sum)
	}
	if p, ok := sum.FirstByte.Quantile(0.5); !ok || p > time.Minute {
		t.Errorf("first byte %v %v", p, ok)
	}
	if last := w.read(d).LastRequest; time.Since(last) > time.Minute {
		t.Errorf("last request %v", last)
	}
	w.stop()
	if left := w.read(d); left.Oldest != 0 {
		t.Errorf("the gateway has ended and reports %+v", left)
	}
}

// An engine that fails is counted as errors and ejected, and others answer.
func TestReplicaThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	_, at := w.engine(modelmock.Config{Model: "m"})
	d := w.deploy("m", func(c *ent.DeploymentCreate) { c.SetWeights(map[int]int{1: 50, 2: 50}) })
	w.revision(d, 1, broken.URL)
	w.revision(d, 2, at)
	bad := w.replica(d, 1, deploymentreplica.PhaseReady)
	w.replica(d, 2, deploymentreplica.PhaseReady)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	eventually(t, "the replica is ejected", func() bool {
		w.expect("a request", secret, "m", 200, "one")
		return w.read(d).Replicas[bad.ID].Ejected
	})
}

// Models that no gateway serves have no replica of a machine that is not connected.
func TestMachineThatIsNotConnected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.model("m", nil)
	w.agent = w.Client.Agent.Create().SetName("far").SetResourceGroup(w.group).SaveX(w.ctx)
	w.replica(d, 1, deploymentreplica.PhaseReady)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	for range 10 {
		w.expect("a request", secret, "m", 200, "one")
	}
}
