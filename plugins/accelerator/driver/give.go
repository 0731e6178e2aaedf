package driver

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Give adds device files of the host and the groups that own them to a container's edits, each
// once.
func (h *Host) Give(e *pb.ContainerEdits, names ...string) error {
	for _, name := range names {
		n, err := h.Node(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(e.DeviceNodes, func(old *pb.DeviceNode) bool { return old.GetPath() == n.Path }) {
			continue
		}
		e.DeviceNodes = append(e.DeviceNodes, n)
		if gid := h.Group(name); gid != 0 && !slices.Contains(e.AdditionalGids, gid) {
			e.AdditionalGids = append(e.AdditionalGids, gid)
		}
	}
	return nil
}

// Memlock removes the limit on locked memory, which programs need for some devices.
func Memlock() []*pb.Rlimit {
	return []*pb.Rlimit{{Name: "memlock", Soft: math.MaxUint64, Hard: math.MaxUint64}}
}

// Attached describes a device that is allocated to one workload exclusively.
func Attached(d *pb.Device) *pb.AttachedDevice {
	return &pb.AttachedDevice{DeviceId: d.GetId(), Model: d.GetModel(), MemoryBytes: d.GetMemoryBytes(), ProcessingUnits: d.GetProcessingUnits()}
}

// InOrder sorts grants by a numeric attribute of their devices, for programs that number devices as
// the host's driver does.
func InOrder(grants []accelerator.Grant, attribute string) []accelerator.Grant {
	return slices.SortedStableFunc(slices.Values(grants), func(a, b accelerator.Grant) int {
		return cmp.Compare(Number(a.Device, attribute), Number(b.Device, attribute))
	})
}

// Number returns an attribute of a device as a whole number, or 0 if it is not one.
func Number(d *pb.Device, attribute string) int {
	n, err := strconv.Atoi(d.GetAttributes()[attribute])
	if err != nil {
		return 0
	}
	return n
}
