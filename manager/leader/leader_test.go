package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent/fence"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/managertest"
)

// The leader is killed while sessions start. The other manager continues to schedule, and nothing
// runs twice.
func TestLeaderIsKilled(t *testing.T) {
	c := clustertest.New(t, 0)
	second := c.Start(t)
	for _, name := range []string{"a", "b", "c"} {
		n := &clustertest.Node{Name: name, Dir: t.TempDir(), Network: clustertest.NewFakeNetwork(len(c.Nodes)), Host: fake.NewHost(clustertest.PulledImage())}
		c.Nodes = append(c.Nodes, n)
		c.Join(t, n, c.Manager) // the agent gets the address of the other manager
		managertest.Eventually(t, "the second manager reaches "+name, func() bool { return second.Reaches(name) })
	}
	ctx := c.System(t)
	old := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(ctx).Epoch
	c.Member = second.As(t, c.A.Member)
	var all []uuid.UUID
	for range 5 {
		id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
		c.WaitFor(t, id, lifecycle.Running)
		all = append(all, id)
	}
	for range 10 { // somewhere on their way
		all = append(all, c.Create(t, clustertest.SessionInput(clustertest.Environment("FAKE_CREATE_DELAY", "50ms"), "sleep", "600")))
	}
	c.Manager.Kill()
	killed := time.Now()
	c.Manager = second
	all = append(all, c.Create(t, clustertest.SessionInput(nil, "sleep", "600")))
	c.WaitFor(t, all[len(all)-1], lifecycle.Running)
	t.Logf("a session that was requested after the leader was killed runs after %s", time.Since(killed).Round(time.Millisecond))
	for _, id := range all {
		c.WaitFor(t, id, lifecycle.Running)
	}
	fencedOff(t, c, old, all[0])
	there := 0
	for _, n := range c.Nodes {
		there += c.CountContainers(t, n)
	}
	if kernels := c.Client.Kernel.Query().Where(kernel.StatusEQ(lifecycle.Running)).CountX(ctx); there != len(all) || kernels != len(all) {
		t.Errorf("%d sessions have %d kernels that run and %d containers", len(all), kernels, there)
	}
	c.CheckInvariants(t, false)
	c.WaitForNoDrift(t)
	for _, id := range all {
		c.Terminate(t, id, true)
	}
	for _, id := range all {
		c.WaitForEnd(t, id)
	}
	c.WaitForNoDrift(t)
	c.CheckInvariants(t, true)
}

func TestAnotherManagerTakesOver(t *testing.T) {
	c := clustertest.New(t, 0)
	second := c.Start(t)
	n := &clustertest.Node{Name: "a", Dir: t.TempDir(), Network: clustertest.NewFakeNetwork(len(c.Nodes)), Host: fake.NewHost(clustertest.PulledImage())}
	c.Nodes = append(c.Nodes, n)
	c.Join(t, n, c.Manager) // the agent gets the address of the other manager
	runs := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, runs, lifecycle.Running)
	old := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(c.System(t)).Epoch

	c.Manager.Stop()
	c.Manager = second
	c.Member = second.As(t, c.A.Member)
	starts := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, starts, lifecycle.Running)
	if s := c.Session(t, runs); s.Status != lifecycle.Running {
		t.Errorf("%s under the new leader", s.Status)
	}
	fencedOff(t, c, old, runs)
	for _, id := range []uuid.UUID{runs, starts} {
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
	}
	c.CheckInvariants(t, true)
}

// fencedOff shows that nothing is written under an epoch that is over (I9).
func fencedOff(t *testing.T, c *clustertest.Cluster, old int64, id uuid.UUID) {
	t.Helper()
	ctx := c.System(t)
	now := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(ctx).Epoch
	if now <= old {
		t.Fatalf("epoch %d after %d", now, old)
	}
	for epoch, ok := range map[int64]bool{old: false, now: true, now + 1: false} {
		tx, err := c.Client.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Fence(ctx, tx, epoch); (err == nil) != ok || err != nil && !errdefs.IsAborted(err) {
			t.Errorf("epoch %d, present %d: %v", epoch, now, err)
		}
		_ = tx.Rollback()
	}
	lost := func(context.Context) error { return errdefs.ErrAborted }
	if _, err := leader.RaiseFence(ctx, c.Client, old, lost); !errdefs.IsAborted(err) {
		t.Errorf("an old leader takes the fence back: %v", err)
	}
	if got := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(ctx).Epoch; got != now {
		t.Errorf("an old leader moved the fence from %d to %d", now, got)
	}
}
