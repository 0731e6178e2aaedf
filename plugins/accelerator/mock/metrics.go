package main

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// patterns of utilization in [0, 1]: random levels from a seed, idle, almost full, a cycle of ten
// minutes, and ten seconds of work in each minute.
var patterns = map[string]func(c *config, id string, at time.Time) float64{
	"walk": walk,
	"idle": func(*config, string, time.Time) float64 { return 0 },
	"busy": func(*config, string, time.Time) float64 { return 0.97 },
	"wave": func(_ *config, _ string, at time.Time) float64 {
		return (1 - math.Cos(2*math.Pi*float64(at.Unix()%600)/600)) / 2
	},
	"spikes": func(_ *config, _ string, at time.Time) float64 {
		if at.Second() < 10 {
			return 0.9
		}
		return 0.02
	},
}

// walk depends only on its arguments, so all callers get the same value. It interpolates between
// one random level per minute and the next.
func walk(c *config, id string, at time.Time) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	level := func(minute int64) float64 {
		return rand.New(rand.NewPCG(uint64(c.Seed)^h.Sum64(), uint64(minute))).Float64()
	}
	minute, into := at.Unix()/60, float64(at.UnixMilli()%60_000)/60_000
	smooth := (1 - math.Cos(math.Pi*into)) / 2
	return level(minute)*(1-smooth) + level(minute+1)*smooth
}

func gauge(name, id, unit string, value, limit float64, q pb.Metric_Quality) *pb.Metric {
	return &pb.Metric{Name: "mock_" + name, DeviceId: id, Unit: unit, Value: value, Capacity: &limit, Kind: pb.Metric_GAUGE, Quality: q}
}

// load returns the utilization of a device at a time.
func (m *mock) load(id string, at time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return patterns[m.cfg.Load](&m.cfg, id, at)
}

func (m *mock) WatchNodeMetrics(req *pb.WatchNodeMetricsRequest, out pb.Accelerator_WatchNodeMetricsServer) error {
	m.faults.strike("WatchNodeMetrics")
	if _, err := m.feed.Ready(); err != nil {
		return err
	}
	return accelerator.Every(out.Context(), req.GetIntervalMs(), func() error {
		m.faults.strike("WatchNodeMetrics")
		now := time.Now()
		s := &pb.NodeSample{UnixMs: now.UnixMilli()}
		for _, d := range m.feed.Snapshot().GetDevices() {
			id, mem := d.GetId(), float64(d.GetMemoryBytes())
			busy := m.load(id, now)
			s.Metrics = append(s.Metrics,
				gauge("util", id, "percent", 100*busy, 100, pb.Metric_MEASURED),
				gauge("mem", id, "bytes", math.Floor(busy*mem), mem, pb.Metric_MEASURED),
				gauge("power", id, "watt", 40+260*busy, 300, pb.Metric_MEASURED),
				gauge("temperature", id, "celsius", 30+50*busy, 95, pb.Metric_ESTIMATED),
			)
		}
		return out.Send(s)
	})
}

func (m *mock) WatchWorkloadMetrics(stream pb.Accelerator_WatchWorkloadMetricsServer) error {
	m.faults.strike("WatchWorkloadMetrics")
	if _, err := m.feed.Ready(); err != nil {
		return err
	}
	return accelerator.ServeWorkloads(stream, func(set *pb.WorkloadSet) *pb.WorkloadSample {
		s := m.feed.Snapshot()
		out := &pb.WorkloadSample{}
		for _, w := range set.GetWorkloads() {
			out.Workloads = append(out.Workloads, m.workload(s, w, set.GetPerProcess()))
		}
		return out
	})
}

// workload attributes a part of its devices' usage to a container. The containers together never
// use more than the device.
func (m *mock) workload(s *pb.DeviceSnapshot, w *pb.Workload, each bool) *pb.WorkloadMetrics {
	out := &pb.WorkloadMetrics{AllocationId: w.GetAllocationId()}
	grants, err := accelerator.Grants(s, w.GetAllocations())
	if err != nil {
		return out // the device is gone
	}
	for _, g := range grants {
		id, mem := g.Device.GetId(), float64(g.Device.GetMemoryBytes())
		busy := m.load(id, time.Now())
		out.Metrics = append(out.Metrics,
			gauge("util", id, "percent", 100*busy*g.Part, 100*g.Part, pb.Metric_ATTRIBUTED),
			gauge("mem", id, "bytes", math.Floor(busy*mem*g.Part), mem*g.Part, pb.Metric_ATTRIBUTED),
		)
	}
	if n := float64(len(w.GetHostPids())); each && n > 0 {
		for _, pid := range w.GetHostPids() {
			p := &pb.ProcessMetrics{HostPid: pid}
			for _, x := range out.Metrics {
				p.Metrics = append(p.Metrics, &pb.Metric{Name: x.Name, DeviceId: x.DeviceId, Unit: x.Unit,
					Value: x.Value / n, Kind: x.Kind, Quality: pb.Metric_ESTIMATED})
			}
			out.Processes = append(out.Processes, p)
		}
	}
	return out
}
