package leader_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/fence"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/managertest"
)

// clusterState is the state of the cluster in GraphQL.
type clusterState struct {
	Cluster struct {
		Led    bool
		Leader *struct {
			ID, Address string
			Epoch       int64
		}
	}
}

func leaderOf(t *testing.T, m *managertest.Manager, c *managertest.World) (got clusterState) {
	t.Helper()
	m.As(t, c.Superadmin).Must(t, `{ cluster { led leader { id address since epoch } } }`, nil, &got)
	return got
}

// leaderLine is the status and the line of /readyz about the leader.
func leaderLine(t *testing.T, m *managertest.Manager) (int, string) {
	t.Helper()
	res, err := http.Get(m.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "leader ") {
			return res.StatusCode, strings.TrimSpace(line)
		}
	}
	return res.StatusCode, ""
}

// An etcd that was lost counts its revisions from 1 again, far below the epoch that the
// database and the agents know.
func TestLeaderAfterEtcdWasLost(t *testing.T) {
	c := clustertest.New(t, 1)
	runs := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, runs, lifecycle.Running)
	high := time.Now().Unix() + 1_000_000 // as where etcd is shared with a busy cluster
	c.Client.Fence.Update().Where(fence.Name(leader.FenceName)).SetEpoch(high).ExecX(c.System(t))
	c.Manager.Stop()
	c.Manager = c.Start(t)
	c.Member = c.Manager.As(t, c.A.Member)
	managertest.Eventually(t, "a manager leads", func() bool { return leaderOf(t, c.Manager, c.World).Cluster.Led })
	if got := leaderOf(t, c.Manager, c.World).Cluster.Leader; got.Epoch != high+1 || got.Address != c.Manager.ClusterAddress() || got.ID == "" {
		t.Errorf("leader %+v, want epoch %d at %s", got, high+1, c.Manager.ClusterAddress())
	}
	n := c.Nodes[0]
	n.Stop()
	c.Join(t, n, c.Manager)
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	c.WaitForNoDrift(t)
	for _, id := range []uuid.UUID{runs, id} {
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
	}
	c.CheckInvariants(t, true)
}

// A database that was restored under a manager that leads has an older epoch: the leader could no
// longer change anything, so it begins a new epoch.
func TestLeaderAfterTheFenceMoved(t *testing.T) {
	c := clustertest.New(t, 1)
	managertest.Eventually(t, "a manager leads", func() bool { return leaderOf(t, c.Manager, c.World).Cluster.Led })
	for _, epoch := range []int64{1, 2_000_000} {
		before := leaderOf(t, c.Manager, c.World).Cluster.Leader.Epoch
		c.Client.Fence.Update().Where(fence.Name(leader.FenceName)).SetEpoch(epoch).ExecX(c.System(t))
		managertest.Eventually(t, "the leader begins a new epoch", func() bool {
			l := leaderOf(t, c.Manager, c.World).Cluster.Leader
			return l != nil && l.Epoch > max(before, epoch)
		})
		id := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
		c.WaitForEnd(t, id)
	}
}

// While no manager leads, users can see this, and managers still answer requests.
func TestNobodyLeads(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	etcd := w.Etcd(t)
	const before = "election//berth/leader/0" // simulates a candidate that does not lead
	if _, err := etcd.Put(t.Context(), before, "nobody"); err != nil {
		t.Fatal(err)
	}
	m := w.Start(t)
	if got := leaderOf(t, m, w); got.Cluster.Led || got.Cluster.Leader != nil {
		t.Errorf("%+v", got)
	}
	if status, line := leaderLine(t, m); status != http.StatusOK || line != "leader none" {
		t.Errorf("%d %q", status, line)
	}
	var seen clusterState
	m.As(t, w.A.Member).Must(t, `{ cluster { led } }`, nil, &seen)
	if seen.Cluster.Led {
		t.Error("a user does not see it")
	}
	if errs := m.As(t, w.A.Member).Ask(t, `{ cluster { leader { address } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a user reads the leader: %s", errs)
	}
	if _, err := etcd.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "the manager leads", func() bool { return leaderOf(t, m, w).Cluster.Led })
	if status, line := leaderLine(t, m); status != http.StatusOK || line != "leader ok" {
		t.Errorf("%d %q", status, line)
	}
}
