package device

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// show replaces the view of a plugin's devices by a validated snapshot. An allocated device that is
// no longer reported stays visible as lost: its kernel continues, and no other kernel gets it.
// While the plugin's scans fail, every device that it does not report stays visible as unknown,
// allocated or not.
func (m *Manager) show(key, vendor string, s *acceleratorpb.DeviceSnapshot) {
	next := view{counters: map[string]map[string]int64{}}
	for _, slot := range s.Slots {
		next.slots = append(next.slots, slotType(slot))
	}
	for _, set := range s.Counters {
		amounts := map[string]int64{}
		for name, text := range set.Counters {
			amounts[name], _ = resource.Parse("count", text) // validated before
		}
		next.counters[key+":"+set.Name] = amounts
		next.sets = append(next.sets, &agentpb.CounterSet{Name: key + ":" + set.Name, Counters: set.Counters})
	}
	for _, l := range s.Links {
		next.links = append(next.links, &agentpb.Link{
			A: key + ":" + l.A, B: key + ":" + l.B, Type: agentpb.Link_Type(l.Type),
			Distance: l.Distance, Gbps: l.Gbps, P2P: l.P2P,
		})
	}
	seen := map[string]bool{}
	for _, d := range s.Devices {
		shown := device(key, vendor, d)
		seen[shown.Id] = true
		next.devices = append(next.devices, shown)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := s.GetLook(); s.GetState() == acceleratorpb.Look_FAILED || s.GetState() == acceleratorpb.Look_HANGING {
		m.views[key] = next.beside(m.views[key], s.GetMessage())
		return
	}
	inUse := map[string]bool{}
	for h := range all(m.amounts, nil) {
		inUse[h.device] = true
	}
	for _, old := range m.views[key].devices {
		if inUse[old.Id] && !seen[old.Id] {
			lost := proto.Clone(old).(*agentpb.Device)
			lost.Health, lost.HealthMessage = agentpb.Device_LOST, "no longer reported by its plugin"
			lost.Allocatable, lost.RejectReasons = false, []string{lost.HealthMessage}
			next.devices = append(next.devices, lost)
		}
	}
	m.views[key] = next
}

// beside adds the devices that only the old view has. The reason keeps them from being allocated.
func (v view) beside(old view, why string) view {
	for _, s := range old.slots {
		if !slices.ContainsFunc(v.slots, func(t *agentpb.SlotType) bool { return t.Name == s.Name }) {
			v.slots = append(v.slots, s)
		}
	}
	for _, set := range old.sets {
		if v.counters[set.Name] == nil {
			v.sets, v.counters[set.Name] = append(v.sets, set), old.counters[set.Name]
		}
	}
	if len(v.devices) == 0 {
		v.links = old.links
	}
	for _, d := range old.devices {
		if slices.ContainsFunc(v.devices, func(n *agentpb.Device) bool { return n.Id == d.Id }) {
			continue
		}
		d = proto.Clone(d).(*agentpb.Device)
		if d.Health != agentpb.Device_LOST {
			d.Health, d.HealthMessage = agentpb.Device_UNKNOWN, why
		}
		d.Allocatable, d.RejectReasons = false, []string{why}
		v.devices = append(v.devices, d)
	}
	return v
}

// ail records a health event. It reports whether the device is known.
func (m *Manager) ail(id string, e *acceleratorpb.HealthEvent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, _ := pluginOf(id)
	for i, d := range m.views[key].devices {
		if d.Id != id {
			continue
		}
		// Reports that were returned earlier must not change.
		changed := proto.Clone(d).(*agentpb.Device)
		changed.Health, changed.HealthMessage = health(e.Health), e.Message
		m.views[key].devices[i] = changed
		return true
	}
	return false
}

func device(key, vendor string, d *acceleratorpb.Device) *agentpb.Device {
	out := &agentpb.Device{
		Id: key + ":" + d.Id, Plugin: key, Vendor: vendor, Model: d.Model, Capacity: d.Capacity,
		Attributes: map[string]string{}, NumaNode: d.NumaNode,
		Health: health(d.Health), HealthMessage: d.HealthMessage,
		Allocatable: d.Allocatable, RejectReasons: d.RejectReasons, PcieRoot: d.PcieRoot,
		PciAddress: d.PciAddress, MemoryBytes: d.MemoryBytes, ProcessingUnits: d.ProcessingUnits,
	}
	if d.ParentId != "" {
		out.Parent = key + ":" + d.ParentId
	}
	for _, g := range d.Groups {
		out.Groups = append(out.Groups, key+":"+g)
	}
	for k, v := range d.Attributes {
		out.Attributes[k] = v
	}
	if d.Serial != "" {
		out.Attributes["serial"] = d.Serial
	}
	for _, use := range d.Consumes {
		out.Consumes = append(out.Consumes, &agentpb.CounterUse{Set: key + ":" + use.Set, Amounts: use.Amounts})
	}
	return out
}

// slotType converts a slot; the two contracts differ by one kind.
func slotType(s *acceleratorpb.SlotType) *agentpb.SlotType {
	return &agentpb.SlotType{
		Name: s.Name, Kind: agentpb.SlotType_Kind(s.Kind - 1), Quantum: s.Quantum, DisplayName: s.DisplayName,
		Description: s.Description, Unit: s.Unit, Icon: s.Icon, ExclusiveWith: s.ExclusiveWith,
		AllowedCounts: s.AllowedCounts, Unified: s.Unified,
	}
}

func health(h acceleratorpb.Health) agentpb.Device_Health {
	switch h {
	case acceleratorpb.Health_HEALTH_HEALTHY:
		return agentpb.Device_HEALTHY
	case acceleratorpb.Health_HEALTH_DEGRADED:
		return agentpb.Device_DEGRADED
	case acceleratorpb.Health_HEALTH_UNHEALTHY:
		return agentpb.Device_UNHEALTHY
	case acceleratorpb.Health_HEALTH_LOST:
		return agentpb.Device_LOST
	}
	return agentpb.Device_UNKNOWN
}

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
