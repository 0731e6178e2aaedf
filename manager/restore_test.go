package manager_test

import (
	"testing"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/managertest"
)

// A database that was restored from a backup does not know the sessions that were made
// after the backup. Their containers go on and keep their devices until an admin has them
// ended.
func TestRestoredDatabaseEndsNoNewerSession(t *testing.T) {
	c := newCluster(t, 1)
	ctx, n := c.System(t), c.nodes[0]
	older := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, older, lifecycle.Running)
	newer := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, newer, lifecycle.Running)
	c.m.Stop()
	k := c.Client.Kernel.Query().Where(kernel.SessionID(newer)).OnlyX(ctx)
	c.Client.Allocation.Delete().Where(allocation.SessionID(newer)).ExecX(ctx)
	c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(newer)).ExecX(ctx)
	c.Client.Kernel.DeleteOne(k).ExecX(ctx)
	c.Client.Session.DeleteOneID(newer).ExecX(ctx)
	c.m = c.Start(t)
	c.as = c.m.As(t, c.A.Member)
	n.stop()
	c.join(t, n, c.m)

	managertest.Eventually(t, "the leader has found it", func() bool { return c.driftMetric(t)["stray"] == "1" })
	if left := c.containers(t, n); left != 2 {
		t.Errorf("%d containers are left, want 2", left)
	}
	if mended := c.metric(t, "berth_occupancy_repairs_total")["stray"]; mended != "0" {
		t.Errorf("%s strays were ended", mended)
	}
	if s := c.session(t, older); s.Status != lifecycle.Running {
		t.Errorf("the older session is %s\n%s", s.Status, c.history(t, older))
	}
	a := c.compare(t)
	if a.kinds() != "[stray:1]" || a.Drift[0].Agent != n.name || *a.Drift[0].Kernel != k.ID || !a.Drift[0].Repaired {
		t.Errorf("%+v", a)
	}
	managertest.Eventually(t, "it ends when an admin asks for it", func() bool { return c.containers(t, n) == 1 })
	c.noDrift(t)
}
