package collective

import "fmt"

// Feature is a way in which accelerators exchange data without the memory of their machine.
type Feature string

// The features.
const (
	RDMA    Feature = "RDMA"    // network cards read and write the accelerators' memory
	Storage Feature = "STORAGE" // file systems read and write the accelerators' memory
)

// Status reports whether a kernel has a feature.
type Status struct {
	Feature   Feature
	Available bool
	Reason    string // why the feature is missing, or what provides it
	level     string // the distance between cards and accelerators, as NCCL names it
}

// Direct returns the state of GPUDirect in a kernel; nothing in a kernel without GPUs.
func Direct(k Kernel) []Status {
	gpus := k.of(nvidia, amd)
	if len(gpus) == 0 {
		return nil
	}
	list := []Status{direct(gpus, k.of(cards))}
	if len(k.of(nvidia)) > 0 {
		list = append(list, storage(k.of(nvidia)))
	}
	return list
}

// direct returns the state of GPUDirect RDMA.
func direct(gpus, nics []Device) Status {
	no := func(format string, args ...any) Status {
		return Status{Feature: RDMA, Reason: fmt.Sprintf(format, args...)}
	}
	if len(nics) == 0 {
		return no("the session has no RDMA card; request rdma.nic or rdma.shared")
	}
	for _, nic := range nics {
		if nic.Attributes["link_layer"] == "Ethernet" {
			return no("card %s is a RoCE card, whose addresses belong to the machine's network and not to the container's", name(nic))
		}
	}
	for _, gpu := range gpus {
		if why := unreachable(gpu, nics[0]); why != "" {
			return no("%s", why)
		}
	}
	level := "PXB"
	for _, gpu := range gpus {
		near, why := nearest(gpu, nics)
		if why != "" {
			return no("%s", why)
		}
		if near == "PHB" {
			level = near
		}
	}
	how := map[string]string{"PXB": "each GPU has a card below the same PCIe root", "PHB": "each GPU has a card on the same NUMA node"}
	return Status{Feature: RDMA, Available: true, Reason: how[level], level: level}
}

// unreachable returns why the driver does not permit cards to access the memory of a GPU.
func unreachable(gpu, nic Device) string {
	module := nic.Attributes["peer_memory"]
	switch {
	case gpu.Plugin == amd && module != "amdgpu":
		return "the module amdgpu is not loaded on the machine"
	case gpu.Plugin == nvidia && module != "nvidia_peermem" && module != "nv_peer_mem" && gpu.Attributes["dma_buf"] != "true":
		return "the machine has neither the module nvidia_peermem nor NVIDIA's open kernel modules, which have dma-buf"
	}
	return ""
}

// nearest returns the distance of a GPU from the nearest card, or why no card is near enough. Between
// NUMA nodes, transfers through the memory are faster.
func nearest(gpu Device, nics []Device) (level, why string) {
	for _, nic := range nics {
		switch {
		case gpu.PCIERoot != "" && gpu.PCIERoot == nic.PCIERoot:
			return "PXB", ""
		case gpu.NUMANode != nil && nic.NUMANode != nil && *gpu.NUMANode == *nic.NUMANode:
			level = "PHB"
		}
	}
	if level != "" {
		return level, ""
	}
	nic := nics[0]
	if gpu.NUMANode == nil || nic.NUMANode == nil {
		return "", fmt.Sprintf("GPU %s and card %s have no common PCIe root, and the machine does not report their NUMA nodes", gpu.ID, name(nic))
	}
	return "", fmt.Sprintf("GPU %s is on NUMA node %d and has no card there; card %s is on node %d", gpu.ID, *gpu.NUMANode, name(nic), *nic.NUMANode)
}

// storage returns the state of GPUDirect Storage.
func storage(gpus []Device) Status {
	for _, gpu := range gpus {
		if gpu.Attributes["gpudirect_storage"] != "true" {
			return Status{Feature: Storage, Reason: "the module nvidia_fs is not loaded on the machine"}
		}
	}
	return Status{Feature: Storage, Available: true, Reason: "the module nvidia_fs is loaded; the file system of a folder must support it too"}
}

func name(nic Device) string {
	if n := nic.Attributes["name"]; n != "" {
		return n
	}
	return nic.ID
}
