// Package collective computes the environment variables that describe to programs in a kernel the
// other kernels of their session and the hardware between them: the variables that launchers
// (mpirun, torchrun) and communication libraries (NCCL, RCCL, HCCL, UCX, Gloo) read, and whether
// GPUDirect works. It has no state and does no I/O. docs/cluster-sessions.md lists the variables
// with their sources.
package collective

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Interface is the network interface of every container, over which processes find each other.
const Interface = "eth0"

// Keys of plugins whose devices are treated in a special way.
const (
	cards  = "rdma"
	nvidia = "cuda"
	amd    = "rocm"
	gaudi  = "gaudi"
)

// Kernel is one kernel of a session.
type Kernel struct {
	Hosts    []string // host names of all kernels, by index
	Index    int
	MilliCPU int64
	Devices  []Device // that the kernel has been given, without CPU and memory
}

// Device is a device as its plugin reports it.
type Device struct {
	ID         string // within its plugin: "0000:19:00.0"
	Plugin     string
	PCIERoot   string // "" = unknown
	NUMANode   *int
	Attributes map[string]string
}

// Slots returns the default number of processes that programs start in the kernel: one for each
// accelerator, or one for each CPU.
func (k Kernel) Slots() int {
	if n := len(k.accelerators()); n > 0 {
		return n
	}
	return max(1, int(k.MilliCPU/1000))
}

// accelerators returns the devices that compute.
func (k Kernel) accelerators() []Device {
	return slices.DeleteFunc(slices.Clone(k.Devices), func(d Device) bool { return d.Plugin == cards })
}

// of returns the devices of a plugin, in the order of their names.
func (k Kernel) of(plugins ...string) []Device {
	list := slices.DeleteFunc(slices.Clone(k.Devices), func(d Device) bool { return !slices.Contains(plugins, d.Plugin) })
	slices.SortFunc(list, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Attributes["name"], b.Attributes["name"]), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// ports returns the active ports of the kernel's RDMA cards: mlx5_0:1.
func (k Kernel) ports() (list []string) {
	for _, d := range k.of(cards) {
		if d.Attributes["name"] == "" || d.Attributes["active_ports"] == "" {
			continue
		}
		for port := range strings.SplitSeq(d.Attributes["active_ports"], ",") {
			list = append(list, d.Attributes["name"]+":"+port)
		}
	}
	return list
}

// roce returns the GID index of the kernel's RoCE cards, "" if there are none or if they differ.
func (k Kernel) roce() string {
	index := ""
	for _, d := range k.of(cards) {
		of := d.Attributes["gid_index"]
		if of == "" || index != "" && of != index {
			return ""
		}
		index = of
	}
	return index
}

func number(n int) string { return strconv.Itoa(n) }
