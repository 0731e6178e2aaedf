package integration

import (
	"testing"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// Every kind of drift is created by hand and found, and repaired if that is safe.
func TestOccupancyAudit(t *testing.T) {
	c := clustertest.New(t, 2)
	ctx := c.System(t)
	runs := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, runs, lifecycle.Running)
	if a := c.AuditOccupancy(t); a.Agents != 2 || a.Kernels != 1 || a.Allocations != 2 || len(a.Silent)+len(a.Drift) != 0 {
		t.Errorf("of a healthy cluster: %+v", a)
	}

	t.Run("leaked", func(t *testing.T) {
		id := c.Create(t, clustertest.SessionInput(nil, "exit", "0"))
		c.WaitForEnd(t, id)
		c.Client.Allocation.Update().Where(allocation.SessionID(id)).ClearFreedAt().ExecX(ctx)
		a := c.AuditOccupancy(t)
		if a.Kinds() != "[LEAKED:2]" || !a.Drift[0].Repaired || *a.Drift[0].Session != id {
			t.Errorf("%+v", a)
		}
		// The result of the last audit may now be that of a later audit.
		if found, repaired := c.DriftMetric(t), c.Metric(t, "berth_occupancy_repairs_total"); repaired["leaked"] != "2" || found["leaked"] != "2" && found["leaked"] != "0" {
			t.Errorf("the metrics: %v, repaired %v", found, repaired)
		}
		if c.Client.Allocation.Query().Where(allocation.SessionID(id), allocation.FreedAtIsNil()).ExistX(ctx) {
			t.Error("it is held still")
		}
		c.WaitForNoDrift(t)
	})
	t.Run("orphan", func(t *testing.T) {
		id := c.Create(t, clustertest.SessionInput(nil, "ignore-term"))
		c.WaitFor(t, id, lifecycle.Running)
		n := c.NodeOf(t, id)
		before := c.CountContainers(t, n)
		k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).OnlyIDX(ctx)
		c.Client.Allocation.Delete().Where(allocation.SessionID(id)).ExecX(ctx)
		c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(id)).ExecX(ctx)
		c.Client.Kernel.DeleteOneID(k).ExecX(ctx)
		c.Client.Session.DeleteOneID(id).ExecX(ctx)
		a := c.AuditOccupancy(t)
		if a.Kinds() != "[ORPHAN:1]" || a.Drift[0].Agent != n.Name || *a.Drift[0].Kernel != k || !a.Drift[0].Repaired {
			t.Errorf("%+v", a)
		}
		managertest.Eventually(t, "the orphan ends", func() bool { return c.CountContainers(t, n) == before-1 })
		c.WaitForNoDrift(t)
	})
	t.Run("missing", func(t *testing.T) {
		id := c.Create(t, clustertest.SessionInput(nil, "exit", "3"))
		c.WaitForEnd(t, id)
		c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(id)).ExecX(ctx) // the test has changed its history
		c.Client.Kernel.Update().Where(kernel.SessionID(id)).SetStatus(lifecycle.Running).ClearTerminatedAt().ExecX(ctx)
		c.Client.Session.UpdateOneID(id).SetStatus(lifecycle.Running).ClearTerminatedAt().ClearTerminationReason().ExecX(ctx)
		a := c.AuditOccupancy(t)
		if a.Kinds() != "[MISSING:1]" || *a.Drift[0].Session != id || !a.Drift[0].Repaired {
			t.Errorf("%+v", a)
		}
		if s := c.WaitForEnd(t, id); *s.TerminationReason != session.TerminationReasonFailed || *s.ExitCode != 3 {
			t.Errorf("%s %v", s.Status, *s.TerminationReason)
		}
		c.WaitForNoDrift(t)
		c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(id)).ExecX(ctx)
		c.Client.Allocation.Delete().Where(allocation.SessionID(id)).ExecX(ctx)
		c.Client.Kernel.Delete().Where(kernel.SessionID(id)).ExecX(ctx)
		c.Client.Session.DeleteOneID(id).ExecX(ctx)
	})
	t.Run("freed", func(t *testing.T) {
		rows := func() int {
			return c.Client.Allocation.Query().Where(allocation.SessionID(runs), allocation.FreedAtIsNil()).CountX(ctx)
		}
		c.Client.Allocation.Update().Where(allocation.SessionID(runs)).SetFreedAt(c.A.CreatedAt).ExecX(ctx)
		a := c.AuditOccupancy(t)
		if a.Kinds() != "[FREED:2]" || !a.Drift[0].Repaired || rows() != 2 {
			t.Errorf("%+v, %d rows", a, rows())
		}
		c.WaitForNoDrift(t)
	})
	t.Run("exceeded and missing", func(t *testing.T) {
		on := c.AgentID(t, c.NodeOf(t, runs))
		mem := c.Client.Device.Query().Where(device.AgentID(on), device.DeviceID("mem")).OnlyX(ctx)
		mem.Update().SetCapacity(resource.Slots{"mem": 1}).ExecX(ctx)
		c.Client.Device.Update().Where(device.AgentID(on), device.DeviceID("cpu")).SetHealth(device.HealthLost).ExecX(ctx)
		a := c.AuditOccupancy(t)
		if a.Kinds() != "[EXCEEDED:1 GONE:1]" || a.Drift[0].Repaired || a.Drift[1].Repaired {
			t.Errorf("%+v", a)
		}
		if s := c.Session(t, runs); s.Status != lifecycle.Running {
			t.Errorf("the session on them is %s", s.Status)
		}
		mem.Update().SetCapacity(mem.Capacity).ExecX(ctx)
		c.Client.Device.Update().Where(device.AgentID(on)).SetHealth(device.HealthHealthy).ExecX(ctx)
		c.WaitForNoDrift(t)
	})
	t.Run("without permission", func(t *testing.T) {
		for _, who := range []*managertest.Client{c.Member, c.Manager.As(t, c.A.Admin), c.Manager.As(t, c.Monitor)} {
			if errs := who.Ask(t, `mutation { auditOccupancy { audit { at } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
				t.Errorf("%s", errs)
			}
		}
	})
	c.Terminate(t, runs, true)
	c.WaitForEnd(t, runs)
	c.CheckInvariants(t, true)
}
