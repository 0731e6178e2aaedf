package integration

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// loseAgent makes the last heartbeat of a stopped agent look old enough.
func loseAgent(t *testing.T, c *clustertest.Cluster, n *clustertest.Node) {
	t.Helper()
	ago := time.Now().Add(-time.Hour)
	managertest.Eventually(t, "agent is lost", func() bool {
		// Repeated, because its last report may still be written.
		c.Client.Agent.Update().Where(entagent.Name(n.Name), entagent.LastSeenAtGT(ago)).SetLastSeenAt(ago).ExecX(c.System(t))
		return c.Client.Agent.Query().Where(entagent.Name(n.Name)).OnlyX(c.System(t)).Status == entagent.StatusLost
	})
}

func TestAgentGoesAndComesBack(t *testing.T) {
	c := clustertest.New(t, 1)
	n := c.Nodes[0]
	stays := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	ends := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	goes := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	for _, id := range []uuid.UUID{stays, ends, goes} {
		c.WaitFor(t, id, lifecycle.Running)
	}
	n.Stop()
	loseAgent(t, c, n)
	// Its end is requested while no manager can end it.
	if errs := c.Terminate(t, ends, false); len(errs) > 0 {
		t.Fatal(errs)
	}
	// Its container vanishes while no manager watches.
	list, _ := fake.New(n.Host, n.Name).Containers(t.Context())
	for _, one := range list {
		if one.Labels()["berth.session"] == goes.String() {
			if err := one.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := c.Session(t, stays); s.Status != lifecycle.Running {
		t.Errorf("%s while its agent is disconnected", s.Status)
	}
	c.CheckInvariants(t, false)
	c.Join(t, n, c.Manager)
	if s := c.WaitForEnd(t, ends); s.Status != lifecycle.Terminated {
		t.Errorf("asked to end: %s", s.Status)
	}
	if s := c.WaitForEnd(t, goes); *s.TerminationReason != session.TerminationReasonKernelLost {
		t.Errorf("lost container: %s %v", s.Status, *s.TerminationReason)
	}
	if s := c.Session(t, stays); s.Status != lifecycle.Running {
		t.Errorf("%s after its agent came back", s.Status)
	}
	if k := c.CountContainers(t, n); k != 1 {
		t.Errorf("%d containers, want the one that runs", k)
	}
	c.Terminate(t, stays, true)
	c.WaitForEnd(t, stays)
	c.CheckInvariants(t, true)
}

// A session whose agent was lost during the start is placed elsewhere. When the agent is back with
// the container, only one of the two continues.
func TestStrayContainerEnds(t *testing.T) {
	c := clustertest.New(t, 2)
	id := c.Create(t, clustertest.SessionInput(clustertest.Environment("FAKE_CREATE_DELAY", "300ms"), "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Creating)
	k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().OnlyX(c.System(t))
	first, second := c.Nodes[0], c.Nodes[1]
	if k.Edges.Agent.Name == second.Name {
		first, second = second, first
	}
	managertest.Eventually(t, "container is there", func() bool { return c.CountContainers(t, first) == 1 })
	c.WaitFor(t, id, lifecycle.Running)
	first.Stop()
	loseAgent(t, c, first)
	// The answer of the agent is lost, so that the session is still starting.
	ctx := c.System(t)
	c.Client.Session.UpdateOneID(id).SetStatus(lifecycle.Creating).ClearStartedAt().AddVersion(1).
		SetDeadlineAt(time.Now().Add(time.Hour)).ExecX(ctx)
	managertest.Eventually(t, "session runs elsewhere", func() bool {
		c.Client.Session.UpdateOneID(id).ClearRetryAt().ExecX(ctx)
		k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).WithAgent().OnlyX(ctx)
		return k.Status == lifecycle.Running && k.Edges.Agent.Name == second.Name
	})
	if c.CountContainers(t, first) != 1 {
		t.Fatal("the first container has ended too early for the test")
	}
	c.Join(t, first, c.Manager)
	managertest.Eventually(t, "the first container ends", func() bool { return c.CountContainers(t, first) == 0 })
	if s := c.Session(t, id); s.Status != lifecycle.Running || c.CountContainers(t, second) != 1 {
		t.Errorf("%s with %d containers\n%s", s.Status, c.CountContainers(t, second), c.History(t, id))
	}
	c.Client.SessionEvent.Delete().ExecX(ctx) // its history was bent above
	c.Terminate(t, id, true)
	c.WaitForEnd(t, id)
}
