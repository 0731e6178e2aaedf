package containerd

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	v2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"

	"github.com/berthhq/berth/agent/runtime"
)

// Stats reads the usage of the container's cgroup through its shim, for v1 and v2.
func (c *container) Stats(ctx context.Context) (runtime.Stats, error) {
	ctx = named(ctx)
	t, err := c.task(ctx)
	if err != nil {
		return runtime.Stats{}, err
	}
	metric, err := t.Metrics(ctx)
	if err != nil {
		return runtime.Stats{}, fmt.Errorf("metrics of container %s: %w", c.ID(), err)
	}
	data, err := typeurl.UnmarshalAny(metric.Data)
	if err != nil {
		return runtime.Stats{}, fmt.Errorf("metrics of container %s: %w", c.ID(), err)
	}
	switch m := data.(type) {
	case *v1.Metrics:
		return statsV1(m), nil
	case *v2.Metrics:
		return statsV2(m), nil
	}
	return runtime.Stats{}, fmt.Errorf("metrics of container %s are a %T: %w", c.ID(), data, errdefs.ErrNotImplemented)
}

func statsV1(m *v1.Metrics) runtime.Stats {
	s := runtime.Stats{
		CPU:      time.Duration(m.GetCPU().GetUsage().GetTotal()),
		Pids:     m.GetPids().GetCurrent(),
		OOMKills: m.GetMemoryOomControl().GetOomKill(),
	}
	// v1 includes the page cache in the usage.
	s.Memory = less(m.GetMemory().GetUsage().GetUsage(), m.GetMemory().GetTotalInactiveFile())
	for _, e := range m.GetBlkio().GetIoServiceBytesRecursive() {
		switch strings.ToLower(e.GetOp()) {
		case "read":
			s.IORead += e.GetValue()
		case "write":
			s.IOWrite += e.GetValue()
		}
	}
	return s
}

func statsV2(m *v2.Metrics) runtime.Stats {
	s := runtime.Stats{
		CPU:      time.Duration(m.GetCPU().GetUsageUsec()) * time.Microsecond,
		Memory:   less(m.GetMemory().GetUsage(), m.GetMemory().GetInactiveFile()),
		Pids:     m.GetPids().GetCurrent(),
		OOMKills: m.GetMemoryEvents().GetOomKill(),
	}
	for _, e := range m.GetIo().GetUsage() {
		s.IORead += e.GetRbytes()
		s.IOWrite += e.GetWbytes()
	}
	return s
}

func less(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
