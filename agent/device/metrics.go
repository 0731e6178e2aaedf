package device

import (
	"context"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Workload is a running container, for plugins that measure containers.
type Workload struct {
	ID          string // of the allocation
	ContainerID string
	CgroupPath  string
	PIDs        []int32
	Allocations []*agentpb.Allocation
}

// metricInterval is the interval of the plugins' metric streams.
const metricInterval = 5 * time.Second

// metricStale is the age after which a plugin's metrics of containers are no longer reported. The
// metrics of a plugin that hangs would look current.
const metricStale = 6 * metricInterval

func (p *plugin) nodeMetrics(ctx context.Context, c *accelerator.Client) error {
	stream, err := c.WatchNodeMetrics(ctx, &acceleratorpb.WatchNodeMetricsRequest{IntervalMs: uint32(metricInterval.Milliseconds())})
	if err != nil {
		return err
	}
	for {
		sample, err := stream.Recv()
		if err != nil {
			return err
		}
		kept := p.plausible(c, sample.Metrics)
		p.mu.Lock()
		p.node = kept
		p.mu.Unlock()
	}
}

func (p *plugin) workloadMetrics(ctx context.Context, c *accelerator.Client) error {
	if !offers(c, acceleratorpb.Capability_CAPABILITY_WORKLOAD_METRICS) {
		return nil
	}
	stream, err := c.WatchWorkloadMetrics(ctx)
	if err != nil {
		return err
	}
	// A new stream begins with all workloads.
	select {
	case p.changed <- struct{}{}:
	default:
	}
	failed := make(chan error, 1)
	go func() {
		for {
			sample, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			last := map[string]*acceleratorpb.WorkloadMetrics{}
			for _, w := range sample.Workloads {
				w.Metrics = p.plausible(c, w.Metrics)
				last[w.AllocationId] = w
			}
			p.mu.Lock()
			p.workloads, p.measured = last, time.Now()
			p.mu.Unlock()
		}
	}()
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-p.changed:
			p.mu.Lock()
			set := &acceleratorpb.WorkloadSet{IntervalMs: uint32(metricInterval.Milliseconds()), Workloads: p.wanted}
			p.mu.Unlock()
			if err := stream.Send(set); err != nil {
				return err
			}
		}
	}
}

// plausible drops metrics with impossible values.
func (p *plugin) plausible(c *accelerator.Client, list []*acceleratorpb.Metric) []*acceleratorpb.Metric {
	kept := list[:0]
	for _, m := range list {
		if err := accelerator.ValidateMetric(c.Description.Key, m); err != nil {
			p.m.cfg.Logger.Debug("metric dropped", "plugin", p.name, "error", err)
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// Watch sets the containers that plugins measure.
func (m *Manager) Watch(workloads []Workload) {
	for _, p := range m.plugins {
		key := p.Key()
		var set []*acceleratorpb.Workload
		for _, w := range workloads {
			if part := m.split(w.Allocations)[key]; len(part) > 0 {
				set = append(set, &acceleratorpb.Workload{
					AllocationId: w.ID, Allocations: part, ContainerId: w.ContainerID, CgroupPath: w.CgroupPath, HostPids: w.PIDs,
				})
			}
		}
		p.mu.Lock()
		p.wanted = set
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// NodeMetrics returns the latest metrics of the devices.
func (m *Manager) NodeMetrics() []*agentpb.Metric {
	var out []*agentpb.Metric
	for _, p := range m.plugins {
		p.mu.Lock()
		key, list := p.key, p.node
		p.mu.Unlock()
		out = append(out, metrics(key, list)...)
	}
	return out
}

// WorkloadMetrics returns the latest metrics of one allocation.
func (m *Manager) WorkloadMetrics(id string) []*agentpb.Metric {
	var out []*agentpb.Metric
	for _, p := range m.plugins {
		p.mu.Lock()
		key, list := p.key, p.workloads[id].GetMetrics()
		if time.Since(p.measured) > metricStale {
			list = nil
		}
		p.mu.Unlock()
		out = append(out, metrics(key, list)...)
	}
	return out
}

func metrics(key string, list []*acceleratorpb.Metric) []*agentpb.Metric {
	out := make([]*agentpb.Metric, 0, len(list))
	for _, m := range list {
		device := ""
		if m.DeviceId != "" {
			device = key + ":" + m.DeviceId
		}
		out = append(out, &agentpb.Metric{
			Name: m.Name, DeviceId: device, Value: m.Value, Capacity: m.GetCapacity(), Unit: m.Unit,
			Quality: qualities[m.Quality],
		})
	}
	return out
}

var qualities = map[acceleratorpb.Metric_Quality]agentpb.Metric_Quality{
	acceleratorpb.Metric_UNKNOWN:     agentpb.Metric_UNAVAILABLE,
	acceleratorpb.Metric_MEASURED:    agentpb.Metric_MEASURED,
	acceleratorpb.Metric_ATTRIBUTED:  agentpb.Metric_ATTRIBUTED,
	acceleratorpb.Metric_ESTIMATED:   agentpb.Metric_ESTIMATED,
	acceleratorpb.Metric_UNAVAILABLE: agentpb.Metric_UNAVAILABLE,
}
