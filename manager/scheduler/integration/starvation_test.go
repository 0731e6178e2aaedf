package integration

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// TestBigSessionIsNotStarved creates small sessions all the time, so that each one that ends would
// be followed by the next. The large session gets the machine nevertheless, and the small ones
// continue after it.
func TestBigSessionIsNotStarved(t *testing.T) {
	c := clustertest.New(t, 1)
	super := c.Manager.As(t, c.Superadmin)
	mem := c.Client.Device.Query().Where(device.DeviceID("mem")).OnlyX(c.System(t)).Capacity[resource.Mem]
	ask := func(tenths int64) uuid.UUID {
		t.Helper()
		return c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": resource.Format(resource.Mem, mem/10*tenths)}}, "run"))
	}
	super.Must(t, changeGroup, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "holdAfter": 0}}, nil)

	var small []uuid.UUID
	for range 3 {
		small = append(small, ask(3))
	}
	for _, id := range small {
		c.WaitFor(t, id, lifecycle.Running)
	}
	big := ask(8)
	c.WaitForReason(t, big, "mem")
	for i, id := range small[:3] {
		next := ask(3) // behind the large session
		c.WaitForReason(t, next, "")
		c.Terminate(t, id, true)
		c.WaitForEnd(t, id)
		if i < 2 { // there is room for the session, but it is reserved for the large one
			c.WaitForReason(t, next, "reserved for an earlier session")
			c.WaitForReason(t, big, "mem")
		}
		small = append(small, next)
	}
	c.WaitFor(t, big, lifecycle.Running)
	c.Terminate(t, big, true)
	c.WaitForEnd(t, big)
	for _, id := range small[3:] {
		c.WaitFor(t, id, lifecycle.Running)
	}
	c.CheckInvariants(t, false)
}
