package leader_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A leader that loses the network to all agents, while it reaches the stores and another
// manager reaches the agents, loses no agent and no session: the other manager leads soon,
// and sessions start again.
func TestLeaderIsCutOffFromAgents(t *testing.T) {
	c := newClusterBehind(t)
	wire, first := c.wire, c.Manager
	second := c.Start(t)
	c.Grow(t, 2)
	c.UpdateGroup(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	var all []uuid.UUID
	for range 4 {
		id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
		c.WaitFor(t, id, lifecycle.Running)
		all = append(all, id)
	}
	managertest.Eventually(t, "the second manager reaches the agents", func() bool { return second.Reaches("a") && second.Reaches("b") })
	before := leaderOf(t, second, c.World).Cluster.Leader
	if before == nil || before.Address != first.ClusterAddress() {
		t.Fatalf("%+v leads, want the manager behind the wire, %s", before, first.ClusterAddress())
	}
	cut := time.Now()
	wire.Cut()
	c.Manager, c.Member = second, second.As(t, c.A.Member)
	managertest.Eventually(t, "the other manager leads", func() bool {
		if n := c.Client.Agent.Query().Where(entagent.StatusNEQ(entagent.StatusAlive)).CountX(c.System(t)); n > 0 {
			t.Fatalf("%d agents are lost %s after the cut", n, time.Since(cut))
		}
		l := leaderOf(t, second, c.World).Cluster.Leader
		return l != nil && l.Address == second.ClusterAddress()
	})
	t.Logf("the other manager led %s after the cut", time.Since(cut).Round(time.Second))
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	for _, id := range append(all, id) {
		if s := c.Session(t, id); s.Status != lifecycle.Running {
			t.Errorf("session is %s\n%s", s.Status, c.History(t, id))
		}
	}
}

// behind is a cluster whose first manager is reached through a wire that the test can cut.
type behind struct {
	*clustertest.Cluster
	wire *testenv.Wire
}

func newClusterBehind(t *testing.T) *behind {
	t.Helper()
	b := &behind{}
	b.Cluster = clustertest.NewWith(t, 0, func(w *managertest.World) *managertest.Manager {
		return w.StartBehind(t, func(nodes string) string {
			b.wire = testenv.NewWire(t, "tcp", nodes)
			return b.wire.Addr
		})
	})
	return b
}
