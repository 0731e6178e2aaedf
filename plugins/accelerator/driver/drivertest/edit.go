package drivertest

import (
	"maps"
	"slices"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Whole asks for all that devices hold.
func Whole(devices ...*pb.Device) []*pb.Allocation {
	var out []*pb.Allocation
	for _, d := range devices {
		for _, slot := range slices.Sorted(maps.Keys(d.GetCapacity())) {
			out = append(out, &pb.Allocation{Slot: slot, DeviceId: d.GetId(), Amount: d.GetCapacity()[slot]})
		}
	}
	return out
}

// Request is what a machine is asked to prepare, of a snapshot that was just taken.
// The test fills in what else its vendor looks at, such as WorkDir.
func Request(t testing.TB, s *pb.DeviceSnapshot, allocations ...*pb.Allocation) *driver.Request {
	t.Helper()
	grants, err := accelerator.Grants(s, allocations)
	if err != nil {
		t.Fatal(err)
	}
	return &driver.Request{PrepareRequest: &pb.PrepareRequest{Allocations: allocations}, Grants: grants, Snapshot: s}
}

// Edit prepares, and looks at whether the answer keeps the contract.
func Edit(t testing.TB, m driver.Machine, r *driver.Request) *pb.PrepareResponse {
	t.Helper()
	out, err := m.Edit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := accelerator.ValidatePrepared(out); err != nil {
		t.Error(err)
	}
	return out
}

// Nodes are the device files that a container sees, in the order they were given.
func Nodes(r *pb.PrepareResponse) []string {
	var out []string
	for _, n := range r.GetEdits().GetDeviceNodes() {
		out = append(out, n.GetPath())
	}
	return out
}
