package drivertest

import (
	"maps"
	"slices"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Whole returns allocations of the full capacity of devices.
func Whole(devices ...*pb.Device) []*pb.Allocation {
	var out []*pb.Allocation
	for _, d := range devices {
		for _, slot := range slices.Sorted(maps.Keys(d.GetCapacity())) {
			out = append(out, &pb.Allocation{Slot: slot, DeviceId: d.GetId(), Amount: d.GetCapacity()[slot]})
		}
	}
	return out
}

// Request returns a request for devices of a snapshot. The test must set other fields that its
// vendor uses, such as WorkDir.
func Request(t testing.TB, s *pb.DeviceSnapshot, allocations ...*pb.Allocation) *driver.Request {
	t.Helper()
	grants, err := accelerator.Grants(s, allocations)
	if err != nil {
		t.Fatal(err)
	}
	return &driver.Request{PrepareRequest: &pb.PrepareRequest{Allocations: allocations}, Grants: grants, Snapshot: s}
}

// Edit calls Edit and checks that the response conforms to the contract.
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

// Nodes returns the device files that a container sees, in their order.
func Nodes(r *pb.PrepareResponse) []string {
	var out []string
	for _, n := range r.GetEdits().GetDeviceNodes() {
		out = append(out, n.GetPath())
	}
	return out
}
