package manager_test

import (
	"slices"
	"testing"
	"time"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
)

const expelAgent = `mutation($id: ID!) { removeAgent(input: {id: $id, expel: true}) { agent { status } } }`

// An agent that is alive is expelled through one of two managers: both close its tunnels and
// refuse its certificate, its sessions end, and it comes back only with a new token.
func TestAgentIsExpelled(t *testing.T) {
	c := newCluster(t, 0)
	second := c.Start(t)
	c.grow(t, 2)
	n := c.nodes[0]
	managertest.Eventually(t, "the second manager reaches the agents", func() bool { return second.Reaches("a") && second.Reaches("b") })
	in := input(nil, "sleep", "600")
	in["agents"] = []any{c.agentID(t, n)}
	id := c.create(t, in)
	c.reaches(t, id, lifecycle.Running)
	if errs := c.as.Ask(t, expelAgent, managertest.Vars{"id": c.agentID(t, n)}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member expels an agent: %s", errs)
	}
	second.As(t, c.Superadmin).Must(t, expelAgent, managertest.Vars{"id": c.agentID(t, n)}, nil)
	managertest.Eventually(t, "both managers close its tunnels", func() bool { return !c.m.Reaches("a") && !second.Reaches("a") })
	if s := c.over(t, id); s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonAgentLost {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.history(t, id))
	}
	if a := c.Client.Agent.GetX(c.System(t), c.agentID(t, n)); a.Status != entagent.StatusTerminated {
		t.Errorf("the agent is %s", a.Status)
	}
	// Started again with what it has, it is refused, also when another machine has joined as
	// it since: its old certificate stays out.
	n.stop()
	old := *n
	n.dir = t.TempDir()
	c.join(t, n, c.m)
	if got := c.Client.JoinToken.Query().Where(jointoken.UsedBy("a"), jointoken.RevokedAtIsNil()).CountX(c.System(t)); got != 1 {
		t.Errorf("%d joins of the name count", got)
	}
	n.stop()
	managertest.Eventually(t, "nobody holds a tunnel of the name", func() bool { return !c.m.Reaches("a") && !second.Reaches("a") })
	refused := c.runAgent(t, &old, "", c.m)
	defer refused()
	if c.comesBack(t, "a", second) {
		t.Error("the certificate of the expelled agent opens a tunnel again")
	}
	refused()
	// With a new token the same directory is good again.
	c.join(t, &old, c.m)
	c.noDrift(t)
}

// comesBack reports whether an agent is connected within the time in which it has tried
// several times.
func (c *cluster) comesBack(t *testing.T, name string, others ...*managertest.Manager) bool {
	t.Helper()
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if slices.ContainsFunc(append(others, c.m), func(m *managertest.Manager) bool { return m.Reaches(name) }) {
			return true
		}
	}
	return false
}
