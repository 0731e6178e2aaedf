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

const changeGroup = `mutation($in: UpdateResourceGroupInput!) { updateResourceGroup(input: $in) { resourceGroup { strategy order holdAfter } } }`

// The group's order decides which of two waiting sessions gets the free capacity.
func TestOrderOfAGroup(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	super, lead := c.Manager.As(t, c.Superadmin), c.Manager.As(t, c.A.Lead)
	mem := c.Client.Device.Query().Where(device.DeviceID("mem")).OnlyX(ctx).Capacity[resource.Mem]
	part := func(as *managertest.Client, tenths int64) uuid.UUID {
		t.Helper()
		in := clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": resource.Format(resource.Mem, mem/10*tenths)}}, "sleep", "600")
		id, errs := clustertest.TryCreate(t, as, in)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return id
	}
	end := func(id uuid.UUID) {
		super.Must(t, `mutation($id: ID!) { terminateSession(input: {id: $id, force: true}) { session { id } } }`, managertest.Vars{"id": id}, nil)
	}
	for _, one := range []struct {
		order string
		newer bool // the waiting session that starts first
	}{{"FIFO", false}, {"LIFO", true}, {"DRF", true}, {"FAIR_SHARE", true}} {
		t.Run(one.order, func(t *testing.T) {
			var got struct {
				UpdateResourceGroup struct {
					ResourceGroup struct {
						Strategy, Order string
						HoldAfter       int
					}
				}
			}
			super.Must(t, changeGroup, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "order": one.order, "holdAfter": -1, "strategy": "DISPERSED"}}, &got)
			if g := got.UpdateResourceGroup.ResourceGroup; g.Order != one.order || g.HoldAfter != -1 || g.Strategy != "DISPERSED" {
				t.Errorf("%+v", g)
			}
			// The member always uses a share of the processors, and their request is older than the
			// lead's.
			holds := part(c.Member, 3)
			c.WaitFor(t, holds, lifecycle.Running)
			blocker := part(lead, 6)
			c.WaitFor(t, blocker, lifecycle.Running)
			older := part(c.Member, 5)
			newer := part(lead, 5)
			c.WaitForReason(t, older, "mem")
			c.WaitForReason(t, newer, "mem")
			end(blocker)
			first, second := older, newer
			if one.newer {
				first, second = newer, older
			}
			c.WaitFor(t, first, lifecycle.Running)
			c.WaitForReason(t, second, "mem")
			for _, id := range []uuid.UUID{first, second, holds} {
				end(id)
				c.WaitForEnd(t, id)
			}
		})
	}
	for _, seconds := range []int{-2, 2592001} {
		errs := super.Ask(t, changeGroup, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "holdAfter": seconds}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "holdAfter" || errs[0].Extensions.Limit != "-1..2592000" {
			t.Errorf("%d: %s", seconds, errs)
		}
	}
	if errs := lead.Ask(t, changeGroup, managertest.Vars{"in": managertest.Vars{"id": c.Group.ID, "order": "LIFO"}}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("the order, changed by a project's admin: %s", errs)
	}
}
