package device

import (
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// One device is allocated by shares, by bytes and as a whole.
func TestSharesAndBytesOfOneDevice(t *testing.T) {
	m := shown(t, &acceleratorpb.DeviceSnapshot{
		Slots: []*acceleratorpb.SlotType{
			{Name: "x.device", Kind: acceleratorpb.SlotType_COUNT, ExclusiveWith: []string{"x.shares", "x.mem"}},
			{Name: "x.shares", Kind: acceleratorpb.SlotType_SHARES, Quantum: "0.01", Unified: true},
			{Name: "x.mem", Kind: acceleratorpb.SlotType_BYTES, Quantum: "1048576", Unified: true},
		},
		Devices: []*acceleratorpb.Device{{
			Id: "0", Model: "m", Allocatable: true, Health: acceleratorpb.Health_HEALTH_HEALTHY,
			Capacity: map[string]string{"x.device": "1", "x.shares": "1", "x.mem": "85899345920"},
		}},
	})
	for _, c := range []struct {
		id, slot, amount string
		fits             bool
	}{
		{"a", "x.shares", "0.5", true},
		{"b", "x.mem", "42950721536", false}, // a step more than half
		{"b", "x.mem", "42949672960", true},
		{"c", "x.shares", "0.01", false},
		{"c", "x.mem", "1048576", false},
		{"c", "x.device", "1", false},
		{"a", "x.shares", "0.25", true}, // it replaces its larger allocation
		{"c", "x.shares", "0.26", false},
		{"c", "x.mem", "21474836480", true},
		{"d", "x.mem", "1048576", false},
	} {
		err := m.Allocate(c.id, ask("x:0", c.slot, c.amount))
		if (err == nil) != c.fits || err != nil && !errdefs.IsResourceExhausted(err) {
			t.Errorf("%s takes %s of %s: %v", c.id, c.amount, c.slot, err)
		}
	}
	if held := m.Allocated()["x:0"].String(); held != "x.mem 64424509440, x.shares 0.25" {
		t.Errorf("held: %s", held)
	}
}
