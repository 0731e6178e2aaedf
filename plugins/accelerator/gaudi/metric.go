package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	rows, err := m.smi(ctx)
	return driver.Each(s, func(d *pb.Device) []*pb.Metric { return measure(d, rows[d.GetPciAddress()], err) })
}

// SampleWorkloads implements driver.WorkloadSampler. A device is only ever given
// away whole, so what is used of it is its container's, with the little that the
// firmware keeps for itself.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	rows, err := m.smi(ctx)
	return driver.Whole(s, set, func(d *pb.Device) []*pb.Metric { return measure(d, rows[d.GetPciAddress()], err) })
}

func measure(d *pb.Device, r reading, err error) []*pb.Metric {
	get := func(name string) (float64, error) {
		if err != nil {
			return 0, err
		}
		return r.number(name)
	}
	used, noMemory := get("memory.used")
	total, _ := get("memory.total")
	watts, noPower := get("power.draw")
	limit, _ := get("power.max")
	degrees, noHeat := get("temperature.aip")
	busy, noUtil := get("utilization.aip")
	if total <= 0 {
		total = float64(d.GetMemoryBytes())
	}
	util := driver.Gauge("gaudi_util", d.GetId(), "percent", min(busy, 100), 100, noUtil)
	util.Kind = pb.Metric_UTILIZATION
	return []*pb.Metric{
		driver.Gauge("gaudi_mem", d.GetId(), "bytes", used, total, noMemory),
		util,
		driver.Gauge("gaudi_power", d.GetId(), "watt", watts, limit, noPower),
		driver.Gauge("gaudi_temperature", d.GetId(), "celsius", max(degrees, 0), 0, noHeat),
	}
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	_, silent := m.smi(ctx)
	out := []*pb.Check{
		driver.Checked("driver", driver.Exists(m.host.Sys("module/habanalabs")), "habanalabs is loaded", "habanalabs is not loaded"),
		driver.Tried("hl-smi", silent, "answers", "nothing is measured"),
	}
	if file := m.host.Root("etc/habanalabs/gaudinet.json"); m.ScaleOut && driver.Exists(file) {
		_, err := m.gaudinet()
		out = append(out, driver.Tried("gaudinet", err, "gaudinet.json goes into containers", "containers do without"))
	}
	return out
}
