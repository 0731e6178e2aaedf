package scheduler_test

import (
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// TestRowsOfPartitions has an agent with one device and two partitions that are cut from it. They
// exclude each other, so of three sessions, one for each of them, one starts.
func TestRowsOfPartitions(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 1, 4, 0)
	ctx := b.system(t)
	a := client.Agent.Query().OnlyX(ctx)
	client.Agent.UpdateOne(a).SetCounters(report.Counters{"cuda:0": {"slices": 7}}).ExecX(ctx)
	asks := map[string]string{"cuda:0": "cuda.device", "cuda:0/a": "cuda.device:4g", "cuda:0/b": "cuda.device:5g"}
	consumes := map[string]int64{"cuda:0": 0, "cuda:0/a": 4, "cuda:0/b": 5}
	for id, slot := range asks {
		client.SlotType.Create().SetName(slot).SetKind("count").ExecX(ctx)
		d := client.Device.Create().SetAgent(a).SetDeviceID(id).SetCapacity(resource.Slots{slot: 1}).SetHealth("healthy")
		if id != "cuda:0" {
			d.SetParent("cuda:0").SetConsumes([]report.CounterUse{{Set: "cuda:0", Amounts: map[string]int64{"slices": consumes[id]}}})
		}
		d.ExecX(ctx)
	}
	for _, slot := range asks {
		if _, err := b.create(b.As(t, b.A.Member), resource.Slots{resource.CPU: 1000, resource.Mem: 1 << 30, slot: 1}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.scheduler.Begin(ctx, b.epoch).Decide(ctx)
	if err != nil {
		t.Fatal(err)
	}
	placed, waits := 0, 0
	for _, d := range all {
		if d.Placed() {
			placed++
			continue
		}
		waits++
		if got := d.Waiting.Dropped; len(got) != 1 || got[0].Check != "counters" {
			t.Errorf("waits for %+v", got)
		}
	}
	if placed != 1 || waits != 2 {
		t.Errorf("%d placed, %d wait", placed, waits)
	}
}

// TestGroupThatSplitsNothing checks that a request that the group can never serve is refused at
// once.
func TestGroupThatSplitsNothing(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	b.agents(t, 1, 4, 2)
	client.ResourceGroup.UpdateOne(b.group).SetSplit(resourcegroup.SplitNone).ExecX(b.system(t))
	for shares, ok := range map[int64]bool{1500: false, 2000: true, 500: true} {
		_, err := b.create(b.As(t, b.A.Member), resource.Slots{resource.CPU: 100, resource.Mem: 1 << 30, "cuda.shares": shares})
		if ok && err != nil || !ok && !errdefs.IsInvalidArgument(err) {
			t.Errorf("%d thousandths: %v", shares, err)
		}
	}
}
