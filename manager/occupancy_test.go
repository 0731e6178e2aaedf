package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

type drift struct {
	Kind, Agent, Device, Detail string
	Kernel, Session             *uuid.UUID
	Repaired                    bool
	Owner, Project, Next        string
}

type occupancy struct {
	Agents, Kernels, Allocations int
	Silent                       []string
	Drift                        []drift
}

func (o occupancy) kinds() string {
	count := map[string]int{}
	for _, d := range o.Drift {
		count[d.Kind]++
	}
	return strings.TrimPrefix(fmt.Sprint(count), "map")
}

const occupancyFields = `{ agents silent kernels allocations drift { kind agent device kernel session detail repaired owner project next } }`

// compare lets the leader compare and repair.
func (c *cluster) compare(t *testing.T) occupancy {
	t.Helper()
	var got struct{ AuditOccupancy struct{ Audit occupancy } }
	c.m.As(t, c.Superadmin).Must(t, `mutation { auditOccupancy { audit `+occupancyFields+` } }`, nil, &got)
	return got.AuditOccupancy.Audit
}

// noDrift waits until an audit finds nothing, and checks the metric.
func (c *cluster) noDrift(t *testing.T) {
	t.Helper()
	var last occupancy
	managertest.Eventually(t, "nothing differs", func() bool {
		last = c.compare(t)
		return len(last.Drift) == 0
	})
	for kind, n := range c.driftMetric(t) {
		if n != "0" {
			t.Errorf("the metric says %s of %s", n, kind)
		}
	}
}

func (c *cluster) driftMetric(t *testing.T) map[string]string {
	t.Helper()
	out := c.metric(t, "berth_occupancy_drift")
	if len(out) != 6 {
		t.Fatalf("the metric has %v", out)
	}
	return out
}

// metric reads one metric by its kinds.
func (c *cluster) metric(t *testing.T, metric string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range strings.Split(c.m.Scrape(t), "\n") {
		if kind, ok := strings.CutPrefix(line, metric+`{kind="`); ok {
			name, n, _ := strings.Cut(kind, `"} `)
			out[name] = n
		}
	}
	return out
}

// Every kind of drift is created by hand and found, and repaired if that is safe.
func TestOccupancyAudit(t *testing.T) {
	c := newCluster(t, 2)
	ctx := c.System(t)
	runs := c.create(t, input(nil, "sleep", "600"))
	c.reaches(t, runs, lifecycle.Running)
	if a := c.compare(t); a.Agents != 2 || a.Kernels != 1 || a.Allocations != 2 || len(a.Silent)+len(a.Drift) != 0 {
		t.Errorf("of a healthy cluster: %+v", a)
	}

	t.Run("leaked", func(t *testing.T) {
		id := c.create(t, input(nil, "exit", "0"))
		c.over(t, id)
		c.Client.Allocation.Update().Where(allocation.SessionID(id)).ClearFreedAt().ExecX(ctx)
		a := c.compare(t)
		if a.kinds() != "[LEAKED:2]" || !a.Drift[0].Repaired || *a.Drift[0].Session != id {
			t.Errorf("%+v", a)
		}
		// The result of the last audit may now be that of another one.
		if found, repaired := c.driftMetric(t), c.metric(t, "berth_occupancy_repairs_total"); repaired["leaked"] != "2" || found["leaked"] != "2" && found["leaked"] != "0" {
			t.Errorf("the metrics: %v, repaired %v", found, repaired)
		}
		if c.Client.Allocation.Query().Where(allocation.SessionID(id), allocation.FreedAtIsNil()).ExistX(ctx) {
			t.Error("it is held still")
		}
		c.noDrift(t)
	})
	t.Run("orphan", func(t *testing.T) {
		id := c.create(t, input(nil, "ignore-term"))
		c.reaches(t, id, lifecycle.Running)
		n := c.on(t, id)
		before := c.containers(t, n)
		k := c.Client.Kernel.Query().Where(kernel.SessionID(id)).OnlyIDX(ctx)
		c.Client.Allocation.Delete().Where(allocation.SessionID(id)).ExecX(ctx)
		c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(id)).ExecX(ctx)
		c.Client.Kernel.DeleteOneID(k).ExecX(ctx)
		c.Client.Session.DeleteOneID(id).ExecX(ctx)
		a := c.compare(t)
		if a.kinds() != "[ORPHAN:1]" || a.Drift[0].Agent != n.name || *a.Drift[0].Kernel != k || !a.Drift[0].Repaired {
			t.Errorf("%+v", a)
		}
		managertest.Eventually(t, "the orphan ends", func() bool { return c.containers(t, n) == before-1 })
		c.noDrift(t)
	})
	t.Run("missing", func(t *testing.T) {
		id := c.create(t, input(nil, "exit", "3"))
		c.over(t, id)
		c.Client.SessionEvent.Delete().Where(sessionevent.SessionID(id)).ExecX(ctx) // its history is bent here
		c.Client.Kernel.Update().Where(kernel.SessionID(id)).SetStatus(lifecycle.Running).ClearTerminatedAt().ExecX(ctx)
		c.Client.Session.UpdateOneID(id).SetStatus(lifecycle.Running).ClearTerminatedAt().ClearTerminationReason().ExecX(ctx)
		a := c.compare(t)
		if a.kinds() != "[MISSING:1]" || *a.Drift[0].Session != id || !a.Drift[0].Repaired {
			t.Errorf("%+v", a)
		}
		if s := c.over(t, id); *s.TerminationReason != session.TerminationReasonFailed || *s.ExitCode != 3 {
			t.Errorf("%s %v", s.Status, *s.TerminationReason)
		}
		c.noDrift(t)
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
		a := c.compare(t)
		if a.kinds() != "[FREED:2]" || !a.Drift[0].Repaired || rows() != 2 {
			t.Errorf("%+v, %d rows", a, rows())
		}
		c.noDrift(t)
	})
	t.Run("exceeded and gone", func(t *testing.T) {
		on := c.agentID(t, c.on(t, runs))
		mem := c.Client.Device.Query().Where(device.AgentID(on), device.DeviceID("mem")).OnlyX(ctx)
		mem.Update().SetCapacity(resource.Slots{"mem": 1}).ExecX(ctx)
		c.Client.Device.Update().Where(device.AgentID(on), device.DeviceID("cpu")).SetHealth(device.HealthLost).ExecX(ctx)
		a := c.compare(t)
		if a.kinds() != "[EXCEEDED:1 GONE:1]" || a.Drift[0].Repaired || a.Drift[1].Repaired {
			t.Errorf("%+v", a)
		}
		if s := c.session(t, runs); s.Status != lifecycle.Running {
			t.Errorf("what runs on them is %s", s.Status)
		}
		mem.Update().SetCapacity(mem.Capacity).ExecX(ctx)
		c.Client.Device.Update().Where(device.AgentID(on)).SetHealth(device.HealthHealthy).ExecX(ctx)
		c.noDrift(t)
	})
	t.Run("whoever may not", func(t *testing.T) {
		for _, who := range []*managertest.Client{c.as, c.m.As(t, c.A.Admin), c.m.As(t, c.Monitor)} {
			if errs := who.Ask(t, `mutation { auditOccupancy { audit { at } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
				t.Errorf("%s", errs)
			}
		}
	})
	c.end(t, runs, true)
	c.over(t, runs)
	c.check(t, true)
}
