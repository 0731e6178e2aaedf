package integration

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// One accelerator of 16 GiB is allocated by shares and by bytes. Each of two sessions gets half of
// it, by either name, and nothing more fits.
func TestSharesAndBytesOfOneAccelerator(t *testing.T) {
	c := clustertest.New(t, 0)
	ctx := c.System(t)
	c.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 1}`)})
	asks := func(more managertest.Vars) managertest.Vars {
		slots := managertest.Vars{"cpu": "0.05", "mem": "16m"}
		for name, amount := range more {
			slots[name] = amount
		}
		return clustertest.SessionInput(managertest.Vars{"slots": slots}, "sleep", "600")
	}
	bytes := func(amount string) uuid.UUID { return c.Create(t, asks(managertest.Vars{"mock.mem": amount})) }

	half := c.Create(t, shares("0.5"))
	c.WaitFor(t, half, lifecycle.Running)
	more := bytes("8193m")
	c.WaitForReason(t, more, "mock.mem")
	dropped := whyOf(t, c, more).Dropped
	if len(dropped) != 1 || dropped[0].Slot != "mock.mem" {
		t.Errorf("a step more than half waits for %+v", dropped)
	}
	c.Terminate(t, more, true)
	rest := bytes("8g")
	c.WaitFor(t, rest, lifecycle.Running)
	on := c.Client.Allocation.Query().Where(allocation.SlotIn("mock.shares", "mock.mem"), allocation.FreedAtIsNil()).QueryDevice().AllX(ctx)
	if len(on) != 1 {
		t.Errorf("both halves are on %d devices", len(on))
	}
	step := bytes("1m")
	c.WaitForReason(t, step, "mock.mem")
	c.WaitForNoDrift(t)

	t.Run("under both names", func(t *testing.T) {
		_, errs := clustertest.TryCreate(t, c.Member, asks(managertest.Vars{"mock.shares": "0.1", "mock.mem": "1g"}))
		if errs.Code() != "INVALID_ARGUMENT" || len(errs) != 1 || errs[0].Extensions.Field != "slots.mock.shares" || errs[0].Extensions.Limit != "mock.mem" {
			t.Errorf("%v", errs)
		}
	})
	t.Run("more than there is", func(t *testing.T) {
		less := on[0].Capacity.Clone()
		less["mock.mem"] -= 1 << 20
		on[0].Update().SetCapacity(less).ExecX(ctx)
		a := c.AuditOccupancy(t)
		if a.Kinds() != "[EXCEEDED:1]" || !strings.Contains(a.Drift[0].Detail, "mock.shares 0.5") || !strings.Contains(a.Drift[0].Detail, "mock.mem 8589934592") {
			t.Errorf("%+v", a)
		}
		on[0].Update().SetCapacity(on[0].Capacity).ExecX(ctx)
		c.WaitForNoDrift(t)
	})
	c.Terminate(t, half, true)
	c.WaitForEnd(t, half)
	c.WaitFor(t, step, lifecycle.Running)
	c.WaitForNoDrift(t)
}
