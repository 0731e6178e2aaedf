package device

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// node is a NUMA node of this machine.
type node struct {
	number int
	list   string // its processors in the format of cpusets: 0-3,8-11
	cpus   int64
	memory int64 // bytes
}

// Sysfs is the directory in which Linux describes the hardware.
const Sysfs = "/sys"

// nodes returns the NUMA nodes of a machine. It returns none if there is only one, or if the agent
// may use only some of the processors, because it does not know which.
func nodes(sysfs string, cpus int) ([]node, error) {
	dirs, err := filepath.Glob(filepath.Join(sysfs, "devices/system/node/node[0-9]*"))
	if err != nil {
		return nil, err
	}
	var list []node
	sum := int64(0)
	for _, dir := range dirs {
		n, err := readNode(dir)
		if err != nil {
			return nil, fmt.Errorf("read NUMA node %s: %w", filepath.Base(dir), err)
		}
		if sum += n.cpus; n.cpus > 0 || n.memory > 0 {
			list = append(list, n)
		}
	}
	if len(list) < 2 || sum != int64(cpus) {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b node) int { return cmp.Compare(a.number, b.number) })
	return list, nil
}

func readNode(dir string) (n node, err error) {
	if n.number, err = strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node")); err != nil {
		return n, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpulist"))
	if err != nil {
		return n, err
	}
	n.list = strings.TrimSpace(string(text))
	if n.cpus, err = countOf(n.list); err != nil {
		return n, fmt.Errorf("cpulist: %w", err)
	}
	text, err = os.ReadFile(filepath.Join(dir, "meminfo"))
	if err != nil {
		return n, err
	}
	for line := range strings.Lines(string(text)) { // Node 0 MemTotal: 24684096 kB
		if fields := strings.Fields(line); len(fields) >= 4 && fields[2] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil {
				return n, fmt.Errorf("meminfo: %w", err)
			}
			n.memory = kib << 10
		}
	}
	return n, nil
}

// countOf returns the number of members of a list such as 0-3,8.
func countOf(list string) (n int64, err error) {
	for part := range strings.SplitSeq(list, ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseInt(first, 10, 64)
		b, bad := strconv.ParseInt(last, 10, 64)
		if err = errors.Join(err, bad); err != nil || b < a {
			return 0, fmt.Errorf("%.80q is not a list of numbers: %w", list, cmp.Or(err, fs.ErrInvalid))
		}
		n += b - a + 1
	}
	return n, nil
}

// perNode returns the cpu and memory devices of a machine with several nodes. The reserve is
// divided among them by their sizes.
func perNode(list []node, reserve resource.Slots) (devices []*agentpb.Device) {
	var cpus, memory int64
	for _, n := range list {
		cpus, memory = cpus+n.cpus*1000, memory+n.memory
	}
	add := func(n node, id, model, slot string, has, all int64) *agentpb.Device {
		amount := has - int64(float64(reserve[slot])*float64(has)/float64(all))
		if has == 0 || amount <= 0 {
			return nil
		}
		at := int32(n.number)
		d := &agentpb.Device{
			Id: fmt.Sprintf("%s-%d", id, n.number), Model: model, NumaNode: &at, Allocatable: true,
			Capacity: map[string]string{slot: resource.Format(slot, amount)}, Attributes: map[string]string{},
		}
		devices = append(devices, d)
		return d
	}
	for _, n := range list {
		if d := add(n, CPU, cpuModel(), resource.CPU, n.cpus*1000, cpus); d != nil {
			d.Attributes["cores"], d.Attributes["cpus"] = fmt.Sprint(n.cpus), n.list
		}
		add(n, Mem, "RAM", resource.Mem, n.memory, memory)
	}
	return devices
}

// Pin returns the processors and the memory nodes that a container must use: those of the nodes
// that its cpu and memory are allocated from. Empty strings mean no restriction.
func (m *Manager) Pin(allocations []*agentpb.Allocation) (cpus, mems string) {
	if !m.pins {
		return "", ""
	}
	return m.of(allocations, resource.CPU, func(n node) string { return n.list }),
		m.of(allocations, resource.Mem, func(n node) string { return strconv.Itoa(n.number) })
}

// of returns the joined names of the nodes that a slot is allocated from.
func (m *Manager) of(allocations []*agentpb.Allocation, slot string, name func(node) string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := map[int]bool{}
	for _, a := range allocations {
		if a.Slot != slot {
			continue
		}
		d, _ := m.find(a.DeviceId)
		if d == nil || d.NumaNode == nil {
			return ""
		}
		taken[int(d.GetNumaNode())] = true
	}
	var names []string
	for _, n := range m.nodes {
		if taken[n.number] {
			names = append(names, name(n))
		}
	}
	return strings.Join(names, ",")
}

// pinnable reports whether the cgroups of this machine can restrict containers to processors.
func pinnable(sysfs string) bool {
	if text, err := os.ReadFile(filepath.Join(sysfs, "fs/cgroup/cgroup.controllers")); err == nil {
		return slices.Contains(strings.Fields(string(text)), "cpuset")
	}
	_, err := os.Stat(filepath.Join(sysfs, "fs/cgroup/cpuset"))
	return err == nil
}

// lines describes the container's devices to people and programs inside it. The metadata of a
// plugin follows each of its devices, in the order in which the container numbers them.
type lines map[string]string

func (l lines) add(plugin string, r *acceleratorpb.PrepareResponse) error {
	all := maps.Clone(r.GetResourceData())
	if all == nil {
		all = map[string]string{}
	}
	prefix := strings.ToUpper(strings.ReplaceAll(plugin, "-", "_"))
	for i, d := range r.GetAttached() {
		at := fmt.Sprintf("%s_%d_", prefix, i)
		all[at+"DEVICE"] = d.GetDeviceId()
		for name, value := range map[string]string{"MODEL": d.GetModel(), "MEMORY": number(d.GetMemoryBytes()), "UNITS": number(uint64(d.GetProcessingUnits()))} {
			if value != "" {
				all[at+name] = value
			}
		}
	}
	for name, value := range all {
		if other, there := l[name]; there && other != value {
			return fmt.Errorf("resource_data: %s was already set by another plugin: %w", name, errdefs.ErrFailedPrecondition)
		}
		l[name] = value
	}
	return nil
}

// number returns "" for an unknown number.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func (l lines) list() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		out = append(out, name+"="+l[name])
	}
	return out
}
