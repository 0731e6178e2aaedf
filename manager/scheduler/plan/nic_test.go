package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/scheduler/plan"
)

// TestNetworkCardsAreNearTheAccelerators has an agent with a network card at each of its four PCI
// roots, each beside an accelerator.
func TestNetworkCardsAreNearTheAccelerators(t *testing.T) {
	for _, strategy := range plan.Strategies {
		s := newSite()
		s.Groups[0].Strategy = strategy
		a := s.agent("a", make([]resource.Slots, 4)...)
		for i := range 4 {
			d := &a.Devices[2+i]
			d.NUMANode, d.PCIeRoot = new(int), fmt.Sprint("pci", i)
			*d.NUMANode = i / 2
		}
		for i := range 4 {
			root := 3 - i // in another order than the accelerators
			nic := plan.Device{ID: uuid.New(), Name: fmt.Sprint("nic", root), Capacity: resource.Slots{"rdma.nic": 1}, Used: resource.Slots{}, Healthy: true, Allocatable: true, PCIeRoot: fmt.Sprint("pci", root), NUMANode: new(int)}
			*nic.NUMANode = root / 2
			a.Devices = append(a.Devices, nic)
		}
		for i := range 4 {
			s.ask(fmt.Sprint("s", i), 0, resource.Slots{"cuda.device": 1, "rdma.nic": 1})
		}
		for name, d := range s.decide(t) {
			var roots []string
			for _, as := range d.Assignments {
				for _, h := range as.Allocs {
					for i := range a.Devices {
						if x := &a.Devices[i]; x.ID == h.DeviceID && x.PCIeRoot != "" {
							roots = append(roots, x.PCIeRoot)
						}
					}
				}
			}
			if len(roots) != 2 || len(slices.Compact(roots)) != 1 {
				t.Errorf("%s: %s is on %v", strategy, name, roots)
			}
		}
	}
}
