package main

import (
	"context"
	"errors"
	"strconv"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

var errUnknown = errors.New("the driver does not tell")

// Sample implements driver.Sampler.
func (m *machine) Sample(_ context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	var all []*pb.Metric
	for _, d := range s.GetDevices() {
		dir := m.dir(d)
		if dir == "" {
			continue
		}
		all = append(all, m.memory(d, dir), m.util(d, dir))
		if d.GetParentId() != "" {
			continue // power and temperature are measured per card
		}
		at := sensors(dir)
		watts, err := driver.Float(at, "power1_average")
		if err != nil {
			watts, err = driver.Float(at, "power1_input")
		}
		limit, _ := driver.Float(at, "power1_cap")
		all = append(all, driver.Gauge("rocm_power", d.GetId(), "watt", watts/1e6, limit/1e6, err))
		var cold error
		degrees, _, ok := heat(dir)
		if !ok {
			cold = errUnknown
		}
		all = append(all, driver.Gauge("rocm_temperature", d.GetId(), "celsius", degrees, 0, cold))
	}
	return all
}

// dir returns the device's PCI function in sysfs, or "" if it is gone.
func (m *machine) dir(d *pb.Device) string {
	p, ok := m.host.PCIAt(d.GetPciAddress())
	if !ok {
		return ""
	}
	return p.Dir
}

// memory returns the used memory of a device, for all users.
func (m *machine) memory(d *pb.Device, dir string) *pb.Metric {
	var used uint64
	var err error
	if d.GetParentId() == "" {
		used, err = driver.Uint(dir, "mem_info_vram_used")
	} else {
		used, err = driver.Uint(m.host.Sys("class/kfd/kfd/topology/nodes", d.GetAttributes()["kfd_node"], "mem_banks/0/used_memory"))
	}
	return driver.Gauge("rocm_mem", d.GetId(), "bytes", float64(used), float64(d.GetMemoryBytes()), err)
}

// util returns the utilization of a device. The driver does not report it for a partition, but it
// reports how many of its compute units each process occupies.
func (m *machine) util(d *pb.Device, dir string) *pb.Metric {
	if d.GetParentId() == "" {
		busy, err := driver.Float(dir, "gpu_busy_percent")
		return percent(d, busy, err)
	}
	var pids []int32
	for _, name := range driver.Names(m.host.Sys("class/kfd/kfd/proc")) {
		if pid, err := strconv.ParseInt(name, 10, 32); err == nil {
			pids = append(pids, int32(pid))
		}
	}
	return m.occupancy(d, pids)
}

// occupancy estimates the utilization of a device from the compute units that processes occupy.
func (m *machine) occupancy(d *pb.Device, pids []int32) *pb.Metric {
	if d.GetAttributes()["gpu_id"] == "" || d.GetProcessingUnits() == 0 || !driver.Exists(m.host.Sys("class/kfd/kfd/proc")) {
		return percent(d, 0, errUnknown)
	}
	var units uint64
	for _, pid := range pids {
		n, _ := driver.Uint(m.host.Sys("class/kfd/kfd/proc", strconv.Itoa(int(pid)), "stats_"+d.GetAttributes()["gpu_id"], "cu_occupancy"))
		units += min(n, uint64(d.GetProcessingUnits()))
	}
	// Processes share compute units, so the sum can exceed their number.
	return driver.Derived(percent(d, min(100, float64(units)/float64(d.GetProcessingUnits())*100), nil))
}

func percent(d *pb.Device, value float64, err error) *pb.Metric {
	g := driver.Gauge("rocm_util", d.GetId(), "percent", value, 100, err)
	g.Kind = pb.Metric_UTILIZATION
	return g
}
