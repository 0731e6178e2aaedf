package manager_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/ent/fence"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/managertest"
)

// The leader is killed while sessions start: the other manager schedules on, and
// nothing runs twice.
func TestLeaderIsKilled(t *testing.T) {
	c := newCluster(t, 0)
	second := c.Start(t)
	for _, name := range []string{"a", "b", "c"} {
		n := &node{name: name, dir: t.TempDir(), wires: newWires(len(c.nodes)), host: fake.NewHost(pulled())}
		c.nodes = append(c.nodes, n)
		c.join(t, n, c.m) // it learns of the other from the managers
		managertest.Eventually(t, "the second manager reaches "+name, func() bool { return second.Reaches(name) })
	}
	ctx := c.System(t)
	old := c.Client.Fence.Query().Where(fence.Name(leader.FenceName)).OnlyX(ctx).Epoch
	c.as = second.As(t, c.A.Member)
	var all []uuid.UUID
	for range 5 {
		id := c.create(t, input(nil, "sleep", "600"))
		c.reaches(t, id, lifecycle.Running)
		all = append(all, id)
	}
	for range 10 { // somewhere on their way
		all = append(all, c.create(t, input(env("FAKE_CREATE_DELAY", "50ms"), "sleep", "600")))
	}
	c.m.Kill()
	killed := time.Now()
	c.m = second
	all = append(all, c.create(t, input(nil, "sleep", "600")))
	c.reaches(t, all[len(all)-1], lifecycle.Running)
	t.Logf("a session that was asked for after the leader was killed runs after %s", time.Since(killed).Round(time.Millisecond))
	for _, id := range all {
		c.reaches(t, id, lifecycle.Running)
	}
	c.fencedOff(t, old, all[0])
	there := 0
	for _, n := range c.nodes {
		there += c.containers(t, n)
	}
	if kernels := c.Client.Kernel.Query().Where(kernel.StatusEQ(lifecycle.Running)).CountX(ctx); there != len(all) || kernels != len(all) {
		t.Errorf("%d sessions have %d kernels that run and %d containers", len(all), kernels, there)
	}
	c.check(t, false)
	c.noDrift(t)
	for _, id := range all {
		c.end(t, id, true)
	}
	for _, id := range all {
		c.over(t, id)
	}
	c.noDrift(t)
	c.check(t, true)
}
