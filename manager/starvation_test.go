package manager_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// TestBigSessionIsNotStarved: small sessions keep coming, and each that ends would
// be followed by the next; the big one gets the machine all the same, and the
// small ones continue after it.
func TestBigSessionIsNotStarved(t *testing.T) {
	c := newCluster(t, 1)
	super := c.m.As(t, c.Superadmin)
	mem := c.Client.Device.Query().Where(device.DeviceID("mem")).OnlyX(c.System(t)).Capacity[resource.Mem]
	ask := func(tenths int64) uuid.UUID {
		t.Helper()
		return c.create(t, input(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": resource.Format(resource.Mem, mem/10*tenths)}}, "run"))
	}
	super.Must(t, changeGroup, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "holdAfter": 0}}, nil)

	var small []uuid.UUID
	for range 3 {
		small = append(small, ask(3))
	}
	for _, id := range small {
		c.reaches(t, id, lifecycle.Running)
	}
	big := ask(8)
	c.waits(t, big, "mem")
	for i, id := range small[:3] {
		next := ask(3) // behind the big one
		c.waits(t, next, "")
		c.end(t, id, true)
		c.over(t, id)
		if i < 2 { // there is room for it, but that is the big one's
			c.waits(t, next, "reserved for an earlier session")
			c.waits(t, big, "mem")
		}
		small = append(small, next)
	}
	c.reaches(t, big, lifecycle.Running)
	c.end(t, big, true)
	c.over(t, big)
	for _, id := range small[3:] {
		c.reaches(t, id, lifecycle.Running)
	}
	c.check(t, false)
}
