package integration

import (
	"slices"
	"testing"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// One machine allows one or four accelerators per kernel, another one allows two. Other amounts are
// refused. A request for one of these amounts goes to the machine that allows it.
func TestOnlyAmountsOfASlot(t *testing.T) {
	c := clustertest.New(t, 0)
	plugin := testenv.Plugin(t, "accelerator/mock")
	mock := func(config string) agent.PluginConfig {
		return agent.PluginConfig{Path: plugin, Force: true, ConfigJSON: []byte(config)}
	}
	counts := func(want ...int) {
		t.Helper()
		var got struct {
			SlotTypes []struct {
				Name          string
				AllowedCounts []int
			}
		}
		managertest.Eventually(t, "the slot's amounts", func() bool {
			c.Member.Must(t, `{ slotTypes { name allowedCounts } }`, nil, &got)
			for _, s := range got.SlotTypes {
				if s.Name == "mock.device" {
					return slices.Equal(s.AllowedCounts, want)
				}
			}
			return false
		})
	}
	c.Grow(t, 1, mock(`{"devices": 4, "allowed_counts": [1, 4]}`))
	counts(1, 4)
	c.Grow(t, 1, mock(`{"devices": 4, "allowed_counts": [2]}`))
	counts(1, 2, 4)
	asks := func(n string) managertest.Vars {
		return clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": "16m", "mock.device": n}}, "sleep", "600")
	}

	_, errs := clustertest.TryCreate(t, c.Member, asks("3"))
	if errs.Code() != "INVALID_ARGUMENT" || len(errs) != 1 || errs[0].Extensions.Field != "slots.mock.device" || errs[0].Extensions.Limit != "1, 2 or 4" {
		t.Errorf("three: %v", errs)
	}
	if want := "mock.device is available in amounts of 1, 2 or 4, not 3"; len(errs) == 1 && errs[0].Message != want {
		t.Errorf("got %q, want %q", errs[0].Message, want)
	}
	var dry struct {
		DryRun struct {
			Verdict  string
			Refusals []struct{ Field, Limit string }
		}
	}
	c.Member.Must(t, `query($in: CreateSessionInput!) { dryRun(input: $in) { verdict refusals { field limit } } }`, managertest.Vars{"in": asks("3")}, &dry)
	if d := dry.DryRun; d.Verdict != "REFUSED" || len(d.Refusals) != 1 || d.Refusals[0].Field != "slots.mock.device" || d.Refusals[0].Limit != "1, 2 or 4" {
		t.Errorf("tried, three: %+v", d)
	}

	for _, want := range []struct{ n, agent string }{{"2", "b"}, {"1", "a"}, {"2", "b"}} {
		id := c.Create(t, asks(want.n))
		c.WaitFor(t, id, lifecycle.Running)
		held := c.Client.Allocation.Query().Where(allocation.SessionID(id), allocation.Slot("mock.device")).QueryDevice().QueryAgent().OnlyX(c.System(t))
		if held.Name != want.agent {
			t.Errorf("%s accelerators are on machine %s, want %s", want.n, held.Name, want.agent)
		}
	}
	id := c.Create(t, asks("2"))
	c.WaitForReason(t, id, "in other amounts only")
	found := false
	for _, d := range whyOf(t, c, id).Dropped {
		found = found || d.Check == "slot_counts" && d.Slot == "mock.device" && d.Count == 1
	}
	if !found {
		t.Errorf("it waits for %+v", whyOf(t, c, id))
	}

	c.Grow(t, 1, mock(`{"devices": 1}`))
	counts()
}
