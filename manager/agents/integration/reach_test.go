package integration

import (
	"testing"
	"time"

	"github.com/google/uuid"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// stopped returns the groups whose evictions are stopped, according to GraphQL.
type stopped struct {
	Cluster struct {
		EvictionsStopped []struct {
			ResourceGroup       string
			Unreachable, Agents int
		}
	}
}

// If more than half of the agents of a group are lost at once, none of its sessions ends. When
// enough agents are back, the policy applies again.
func TestMassLossEndsNothing(t *testing.T) {
	c := clustertest.New(t, 3)
	c.UpdateGroup(t, managertest.Vars{"lostPolicy": "FAIL", "lostAfter": 0})
	on := map[string]uuid.UUID{}
	for _, n := range c.Nodes {
		in := clustertest.SessionInput(nil, "sleep", "600")
		in["agents"] = []uuid.UUID{c.AgentID(t, n)}
		on[n.Name] = c.Create(t, in)
		c.WaitFor(t, on[n.Name], lifecycle.Running)
	}
	root := c.Manager.As(t, c.Superadmin)
	look := func() (got stopped) {
		root.Must(t, `{ cluster { evictionsStopped { resourceGroup unreachable agents } } }`, nil, &got)
		return got
	}
	if got := look().Cluster.EvictionsStopped; len(got) > 0 {
		t.Errorf("stopped while all is well: %v", got)
	}
	a, b := c.Nodes[0], c.Nodes[1]
	a.Stop()
	b.Stop()
	ago := time.Now().Add(-time.Hour)
	managertest.Eventually(t, "both agents are lost", func() bool {
		c.Client.Agent.Update().Where(entagent.NameIn(a.Name, b.Name), entagent.LastSeenAtGT(ago)).SetLastSeenAt(ago).ExecX(c.System(t))
		return c.Client.Agent.Query().Where(entagent.StatusEQ(entagent.StatusLost)).CountX(c.System(t)) == 2
	})
	if got := look().Cluster.EvictionsStopped; len(got) != 1 || got[0].ResourceGroup != c.Group.Name || got[0].Unreachable != 2 || got[0].Agents != 3 {
		t.Errorf("stopped: %v", got)
	}
	// All sessions are checked every five seconds, so a session that is created later has been
	// checked once it has started.
	for range 2 {
		later := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
		c.WaitForEnd(t, later)
	}
	for _, n := range []*clustertest.Node{a, b} {
		if s := c.Session(t, on[n.Name]); s.Status != lifecycle.Running {
			t.Errorf("the session on lost agent %s is %s\n%s", n.Name, s.Status, c.History(t, on[n.Name]))
		}
	}
	c.Join(t, a, c.Manager)
	if s := c.WaitForEnd(t, on[b.Name]); *s.TerminationReason != session.TerminationReasonAgentLost {
		t.Errorf("%v\n%s", *s.TerminationReason, c.History(t, on[b.Name]))
	}
	if s := c.Session(t, on[a.Name]); s.Status != lifecycle.Running {
		t.Errorf("the session on the agent that is back is %s\n%s", s.Status, c.History(t, on[a.Name]))
	}
	if got := look().Cluster.EvictionsStopped; len(got) > 0 {
		t.Errorf("stopped when enough agents are back: %v", got)
	}
}
