package main

import (
	"cmp"
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	rows, err := m.smi(ctx, query)
	faults, noFaults := m.smi(ctx, errorQuery)
	return driver.Each(s, func(d *pb.Device) []*pb.Metric {
		out := measure(d, rows[d.GetPciAddress()], err)
		return append(append(out, faulty(d, faults[d.GetPciAddress()], noFaults)...), m.ports(d)...)
	})
}

// faulty returns the memory errors since the driver was loaded, as counted by hl-smi.
func faulty(d *pb.Device, r reading, err error) []*pb.Metric {
	count := func(name, of string) *pb.Metric {
		n, unread := r.number(of)
		return driver.Count(name, d.GetId(), "count", n, cmp.Or(err, unread))
	}
	return []*pb.Metric{count("gaudi_ecc_uncorrected", errorQuery[1]), count("gaudi_ecc_corrected", errorQuery[2])}
}

// ports returns the number of a device's network ports with a link, of those that the kernel lists,
// or nothing for a device without ports.
func (m *machine) ports(d *pb.Device) []*pb.Metric {
	p, ok := m.host.PCIAt(d.GetPciAddress())
	if !ok {
		return nil
	}
	all, up := 0, 0
	for _, name := range driver.Names(p.Dir, "net") {
		state := driver.Text(p.Dir, "net", name, "operstate")
		if state == "" {
			continue
		}
		if all++; state == "up" {
			up++
		}
	}
	if all == 0 {
		return nil
	}
	return []*pb.Metric{driver.Gauge("gaudi_links", d.GetId(), "count", float64(up), float64(all), nil)}
}

// SampleWorkloads implements driver.WorkloadSampler. A device is always allocated as a whole, so
// its usage is attributed to its container, including the small part of the firmware.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	rows, err := m.smi(ctx, query)
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
	util := driver.Gauge("gaudi_util", d.GetId(), "percent", busy, 100, noUtil)
	util.Kind = pb.Metric_UTILIZATION
	return []*pb.Metric{
		driver.Gauge("gaudi_mem", d.GetId(), "bytes", used, total, noMemory),
		util,
		driver.Gauge("gaudi_power", d.GetId(), "watt", watts, limit, noPower),
		driver.Gauge("gaudi_temperature", d.GetId(), "celsius", degrees, 0, noHeat),
	}
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	_, silent := m.smi(ctx, query)
	out := []*pb.Check{
		driver.Checked("driver", driver.Exists(m.host.Sys("module/habanalabs")), "habanalabs is loaded", "habanalabs is not loaded"),
		driver.Optional(driver.Tried("hl-smi", silent, "answers", "nothing is measured")),
	}
	if file := m.host.Root("etc/habanalabs/gaudinet.json"); m.ScaleOut && driver.Exists(file) {
		_, err := m.gaudinet()
		out = append(out, driver.Optional(driver.Tried("gaudinet", err, "gaudinet.json goes into containers", "containers do without")))
	}
	return out
}
