package driver

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Give adds device files of the host to a container's edits, each once, and the
// groups that own them.
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

// Memlock lets programs lock as much memory for a device as they like.
func Memlock() []*pb.Rlimit {
	return []*pb.Rlimit{{Name: "memlock", Soft: math.MaxUint64, Hard: math.MaxUint64}}
}

// Attached is what a workload sees of a device that it has for itself.
func Attached(d *pb.Device) *pb.AttachedDevice {
	return &pb.AttachedDevice{DeviceId: d.GetId(), Model: d.GetModel(), MemoryBytes: d.GetMemoryBytes(), ProcessingUnits: d.GetProcessingUnits()}
}

// InOrder sorts grants by a number among their devices' attributes, for programs
// that count devices as the host's driver does.
func InOrder(grants []accelerator.Grant, attribute string) []accelerator.Grant {
	return slices.SortedStableFunc(slices.Values(grants), func(a, b accelerator.Grant) int {
		return cmp.Compare(Number(a.Device, attribute), Number(b.Device, attribute))
	})
}

// Number is a device's attribute that is a whole number, 0 when it is none.
func Number(d *pb.Device, attribute string) int {
	n, err := strconv.Atoi(d.GetAttributes()[attribute])
	if err != nil {
		return 0
	}
	return n
}
