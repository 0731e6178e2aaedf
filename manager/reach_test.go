package manager_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/managertest"
)

// A leader that loses the network to all agents, while it reaches the stores and another
// manager reaches the agents, loses no agent and no session: the other manager leads soon,
// and sessions start again.
func TestLeaderIsCutOffFromAgents(t *testing.T) {
	c := newClusterBehind(t)
	wire, first := c.wire, c.m
	second := c.Start(t)
	c.grow(t, 2)
	c.set(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	var all []uuid.UUID
	for range 4 {
		id := c.create(t, input(nil, "sleep", "600"))
		c.reaches(t, id, lifecycle.Running)
		all = append(all, id)
	}
	managertest.Eventually(t, "the second manager reaches the agents", func() bool { return second.Reaches("a") && second.Reaches("b") })
	before := leaderOf(t, second, c.World).Cluster.Leader
	if before == nil || before.Address != first.ClusterAddress() {
		t.Fatalf("%+v leads, want the manager behind the wire, %s", before, first.ClusterAddress())
	}
	cut := time.Now()
	wire.Cut()
	c.m, c.as = second, second.As(t, c.A.Member)
	managertest.Eventually(t, "the other manager leads", func() bool {
		if n := c.Client.Agent.Query().Where(entagent.StatusNEQ(entagent.StatusAlive)).CountX(c.System(t)); n > 0 {
			t.Fatalf("%d agents are lost %s after the cut", n, time.Since(cut))
		}
		l := leaderOf(t, second, c.World).Cluster.Leader
		return l != nil && l.Address == second.ClusterAddress()
	})
	t.Logf("the other manager led %s after the cut", time.Since(cut).Round(time.Second))
	id := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, id, lifecycle.Running)
	for _, id := range append(all, id) {
		if s := c.session(t, id); s.Status != lifecycle.Running {
			t.Errorf("session is %s\n%s", s.Status, c.history(t, id))
		}
	}
}

// stopped returns the groups whose evictions are stopped, according to GraphQL.
type stopped struct {
	Cluster struct {
		EvictionsStopped []struct {
			ResourceGroup       string
			Unreachable, Agents int
		}
	}
}

// Where more than half of the agents of a group are lost at once, none of its sessions ends
// for that; when enough of them are back, the policy counts again.
func TestMassLossEndsNothing(t *testing.T) {
	c := newCluster(t, 3)
	c.set(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	on := map[string]uuid.UUID{}
	for _, n := range c.nodes {
		in := input(nil, "sleep", "600")
		in["agents"] = []uuid.UUID{c.agentID(t, n)}
		on[n.name] = c.create(t, in)
		c.reaches(t, on[n.name], lifecycle.Running)
	}
	root := c.m.As(t, c.Superadmin)
	look := func() (got stopped) {
		root.Must(t, `{ cluster { evictionsStopped { resourceGroup unreachable agents } } }`, nil, &got)
		return got
	}
	if got := look().Cluster.EvictionsStopped; len(got) > 0 {
		t.Errorf("stopped while all is well: %v", got)
	}
	a, b := c.nodes[0], c.nodes[1]
	a.stop()
	b.stop()
	ago := time.Now().Add(-time.Hour)
	managertest.Eventually(t, "both agents are lost", func() bool {
		c.Client.Agent.Update().Where(entagent.NameIn(a.name, b.name), entagent.LastSeenAtGT(ago)).SetLastSeenAt(ago).ExecX(c.System(t))
		return c.Client.Agent.Query().Where(entagent.StatusEQ(entagent.StatusLost)).CountX(c.System(t)) == 2
	})
	if got := look().Cluster.EvictionsStopped; len(got) != 1 || got[0].ResourceGroup != c.Group.Name || got[0].Unreachable != 2 || got[0].Agents != 3 {
		t.Errorf("stopped: %v", got)
	}
	// All sessions are checked every five seconds, so a session that is created later has been
	// checked once it has started.
	for range 2 {
		later := c.create(t, input(nil, "exit", "0"))
		c.over(t, later)
	}
	for _, n := range []*node{a, b} {
		if s := c.session(t, on[n.name]); s.Status != lifecycle.Running {
			t.Errorf("the session on lost agent %s is %s\n%s", n.name, s.Status, c.history(t, on[n.name]))
		}
	}
	c.join(t, a, c.m)
	if s := c.over(t, on[b.name]); *s.TerminationReason != session.TerminationReasonAgentLost {
		t.Errorf("%v\n%s", *s.TerminationReason, c.history(t, on[b.name]))
	}
	if s := c.session(t, on[a.name]); s.Status != lifecycle.Running {
		t.Errorf("the session on the agent that is back is %s\n%s", s.Status, c.history(t, on[a.name]))
	}
	if got := look().Cluster.EvictionsStopped; len(got) > 0 {
		t.Errorf("stopped when enough agents are back: %v", got)
	}
}

// behind is a cluster whose first manager is reached through a wire that the test can cut.
type behind struct {
	*cluster
	wire *testenv.Wire
}

func newClusterBehind(t *testing.T) *behind {
	t.Helper()
	b := &behind{}
	b.cluster = newClusterOf(t, 0, func(w *managertest.World) *managertest.Manager {
		return w.StartBehind(t, func(nodes string) string {
			b.wire = testenv.NewWire(t, "tcp", nodes)
			return b.wire.Addr
		})
	})
	return b
}
