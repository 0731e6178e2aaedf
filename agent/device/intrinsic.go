package device

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
)

// The ids of the intrinsic devices. A machine with several NUMA nodes has one of each per node,
// with "-" and the node's number appended.
const (
	CPU = "cpu"
	Mem = "mem"
)

// intrinsic returns the cpu and memory devices of this machine, without the reserve.
func intrinsic(reserve resource.Slots, list []node) (view, error) {
	memory, err := meminfo("MemTotal")
	if err != nil {
		return view{}, err
	}
	cpu := int64(runtime.NumCPU())*1000 - reserve[resource.CPU]
	memory -= reserve[resource.Mem]
	if cpu <= 0 || memory <= 0 {
		return view{}, fmt.Errorf("reserve %v leaves nothing of this node: %w", reserve, errdefs.ErrInvalidArgument)
	}
	out := view{
		slots: []*agentpb.SlotType{
			{Name: resource.CPU, Kind: agentpb.SlotType_SHARES, Quantum: "0.001", DisplayName: "CPU", Description: "processor cores", Unit: "core", Icon: "cpu"},
			{Name: resource.Mem, Kind: agentpb.SlotType_BYTES, Quantum: "1", DisplayName: "RAM", Description: "main memory", Unit: "GiB", Icon: "memory"},
		},
		devices: []*agentpb.Device{
			{
				Id: CPU, Model: cpuModel(), Capacity: map[string]string{resource.CPU: resource.Format(resource.CPU, cpu)},
				Attributes: map[string]string{"cores": strconv.Itoa(runtime.NumCPU())}, Allocatable: true,
			},
			{
				Id: Mem, Model: "RAM", Capacity: map[string]string{resource.Mem: resource.Format(resource.Mem, memory)},
				Allocatable: true,
			},
		},
	}
	if len(list) > 0 {
		out.devices = perNode(list, reserve)
	}
	return out, nil
}

// meminfo returns one value of /proc/meminfo in bytes.
func meminfo(key string) (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == key+":" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s in /proc/meminfo: %w", key, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no %s: %w", key, errdefs.ErrNotFound)
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
