package storage

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

func (s *service) report() *storagepb.Report {
	r := &storagepb.Report{
		Name: s.p.cfg.Name, Version: s.p.cfg.Version,
		Incarnation: s.incarnation, PublicUrl: s.p.cfg.PublicURL,
	}
	for _, v := range s.p.Volumes() {
		r.Volumes = append(r.Volumes, volumeOf(v))
	}
	return r
}

func volumeOf(v volume.State) *storagepb.Volume {
	out := &storagepb.Volume{
		Name: v.Name, Backend: v.Backend, Vendor: v.Vendor, PluginVersion: v.PluginVersion,
		Health: health(v.Health), Message: v.Message, Details: v.Details,
		Capabilities: v.Capabilities, Enforcement: v.Enforcement, Performance: performance(v.Performance),
	}
	if c := v.Capacity; c != nil {
		out.UsedBytes, out.Elastic, out.AvailableBytes = c.UsedBytes, c.Elastic, &c.AvailableBytes
		out.TotalInodes, out.UsedInodes, out.CapacityAsOfUnixMs = c.TotalInodes, c.UsedInodes, c.AsOfUnixMs
		if !c.Elastic {
			out.TotalBytes = c.TotalBytes
		}
	}
	return out
}

func performance(p *volumepb.PerformanceSample) *storagepb.Performance {
	if p == nil {
		return nil
	}
	return &storagepb.Performance{
		WholeCluster: p.Subject == volumepb.PerformanceSample_WHOLE_CLUSTER,
		WindowMs:     p.WindowMs, AsOfUnixMs: p.AsOfUnixMs,
		ReadOpsPerSecond: p.ReadOpsPerSecond, WriteOpsPerSecond: p.WriteOpsPerSecond,
		ReadBytesPerSecond: p.ReadBytesPerSecond, WriteBytesPerSecond: p.WriteBytesPerSecond,
		ReadLatencyUs: p.ReadLatencyUs, WriteLatencyUs: p.WriteLatencyUs,
	}
}

func health(h volumepb.HealthReport_State) storagepb.Volume_Health {
	switch h {
	case volumepb.HealthReport_HEALTHY:
		return storagepb.Volume_HEALTHY
	case volumepb.HealthReport_DEGRADED:
		return storagepb.Volume_DEGRADED
	}
	return storagepb.Volume_UNAVAILABLE
}

// Checks returns the conditions under which the proxy is ready: a manager has sent the keys of
// tickets, and at least one volume is available. The check also lists the volumes that are not
// available.
func (p *Proxy) Checks() []opsserver.Check {
	checks := []opsserver.Check{
		{Name: "managers", Probe: func(context.Context) error {
			if p.keys.empty() {
				return fmt.Errorf("no manager has connected since the start: %w", errdefs.ErrUnavailable)
			}
			return nil
		}},
		{Name: "volumes", Probe: func(context.Context) error {
			var err error
			for _, v := range p.set.All() {
				if err = available(v.State()); err == nil {
					return nil
				}
			}
			return err
		}},
	}
	for _, v := range p.set.All() {
		checks = append(checks, opsserver.Check{
			Name: "volume/" + v.Name(), Optional: true, Probe: func(context.Context) error { return available(v.State()) },
		})
	}
	return checks
}

func available(s volume.State) error {
	if s.Health == volumepb.HealthReport_UNAVAILABLE {
		return fmt.Errorf("%s: %w", s.Message, errdefs.ErrUnavailable)
	}
	return nil
}
