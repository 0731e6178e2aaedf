package integration

import (
	"testing"

	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

const expelAgent = `mutation($id: ID!) { deleteAgent(input: {id: $id, expel: true}) { agent { status } } }`

// An agent that is alive is expelled through one of two managers: both close its tunnels and
// refuse its certificate, its sessions end, and it comes back only with a new token.
func TestAgentIsExpelled(t *testing.T) {
	c := clustertest.New(t, 0)
	second := c.Start(t)
	c.Grow(t, 2)
	n := c.Nodes[0]
	managertest.Eventually(t, "the second manager reaches the agents", func() bool { return second.Reaches("a") && second.Reaches("b") })
	in := clustertest.SessionInput(nil, "sleep", "600")
	in["agents"] = []any{c.AgentID(t, n)}
	id := c.Create(t, in)
	c.WaitFor(t, id, lifecycle.Running)
	if errs := c.Member.Ask(t, expelAgent, managertest.Vars{"id": c.AgentID(t, n)}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member expels an agent: %s", errs)
	}
	second.As(t, c.Superadmin).Must(t, expelAgent, managertest.Vars{"id": c.AgentID(t, n)}, nil)
	managertest.Eventually(t, "both managers close its tunnels", func() bool { return !c.Manager.Reaches("a") && !second.Reaches("a") })
	if s := c.WaitForEnd(t, id); s.Status != lifecycle.Error || *s.TerminationReason != session.TerminationReasonAgentLost {
		t.Errorf("%s %v\n%s", s.Status, *s.TerminationReason, c.History(t, id))
	}
	if a := c.Client.Agent.GetX(c.System(t), c.AgentID(t, n)); a.Status != entagent.StatusTerminated {
		t.Errorf("the agent is %s", a.Status)
	}
	// After a restart with its old certificate, it is refused, even after another machine has
	// joined with its name.
	n.Stop()
	old := *n
	n.Dir = t.TempDir()
	c.Join(t, n, c.Manager)
	if got := c.Client.JoinToken.Query().Where(jointoken.UsedBy("a"), jointoken.RevokedAtIsNil()).CountX(c.System(t)); got != 1 {
		t.Errorf("%d joins of the name count", got)
	}
	n.Stop()
	managertest.Eventually(t, "no manager has a tunnel of the name", func() bool { return !c.Manager.Reaches("a") && !second.Reaches("a") })
	said := clustertest.NewJournal()
	c.Log = said.Logger
	refused := c.RunAgent(t, &old, "", c.Manager)
	defer refused()
	managertest.Eventually(t, "the expelled agent is refused", func() bool {
		if c.Manager.Reaches("a") || second.Reaches("a") {
			t.Fatal("the certificate of the expelled agent opens a tunnel again")
		}
		return len(said.Lines("refused: ask for a new join token")) > 0
	})
	refused()
	c.Log = nil
	// With a new token the same directory is good again.
	c.Join(t, &old, c.Manager)
	c.WaitForNoDrift(t)
}
