package volume

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/containerd/errdefs"

	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// The maximum age of an answer of the product. The product is called once within this time,
// however many managers and scrapers read the state.
const (
	healthAge   = 10 * time.Second // also for performance
	capacityAge = 30 * time.Second
	askTimeout  = 10 * time.Second
)

// State is what a proxy reports about a volume.
type State struct {
	Name          string
	Backend       string
	Vendor        string
	PluginVersion string
	Health        volumepb.HealthReport_State
	Message       string
	Details       map[string]string
	Capabilities  []string
	Enforcement   string                      // "" = unknown
	Capacity      *volumepb.CapacityReport    // nil = unknown
	Performance   *volumepb.PerformanceSample // nil = the product does not report it
}

// answers are the plugin's latest answers and their times.
type answers struct {
	from                              *plugin.Client
	health                            *volumepb.HealthReport
	capacity                          *volumepb.CapacityReport
	performance                       *volumepb.PerformanceSample
	healthAt, capacityAt, performedAt time.Time
}

// State returns the state as of the last check.
func (v *Volume) State() State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state
}

// look updates the state and reports whether it changed. It must not run concurrently.
func (v *Volume) look(ctx context.Context) bool {
	s := State{Name: v.cfg.Name, Health: volumepb.HealthReport_HEALTHY}
	root, err := v.identity.root()
	if err != nil {
		s.Health, s.Message = volumepb.HealthReport_UNAVAILABLE, err.Error()
	} else {
		root.Close()
		v.shutOnce()
	}
	if err == nil {
		if err := v.ask(ctx, &s); err != nil {
			// Operations on folders still work; those on scopes do not.
			s.Health, s.Message = volumepb.HealthReport_DEGRADED, err.Error()
		}
	}
	if ctx.Err() != nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.state
	if s.Backend == "" {
		s.Backend, s.Vendor, s.PluginVersion = old.Backend, old.Vendor, old.PluginVersion
		s.Capabilities, s.Enforcement = old.Capabilities, old.Enforcement
	}
	v.state = s
	if old.Health != s.Health {
		v.log.Info("volume", "health", s.Health, "reason", s.Message)
	}
	return old.Health != s.Health || old.Message != s.Message || old.Backend != s.Backend ||
		old.Enforcement != s.Enforcement || !slices.Equal(old.Capabilities, s.Capabilities)
}

// shutOnce closes the scopes that existed before this process, once their volume is mounted.
func (v *Volume) shutOnce() {
	if v.swept {
		return
	}
	err := v.shutScopes()
	if err != nil {
		v.log.Warn("close the directories of scopes", "error", err)
	}
	v.swept = err == nil
}

// ask adds the plugin's values to the state.
func (v *Volume) ask(ctx context.Context, s *State) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return v.call(ctx, func(c *plugin.Client) error {
		v.mu.Lock()
		caps := v.caps
		v.mu.Unlock()
		s.Backend, s.Vendor, s.PluginVersion = c.Description.Backend, c.Description.Vendor, c.Description.Version
		for _, k := range caps.Capabilities {
			s.Capabilities = append(s.Capabilities, capabilityName(k))
		}
		s.Enforcement = enforcementName(caps.Enforcement)
		if err := v.refresh(ctx, c, caps); err != nil {
			return err
		}
		a := &v.told
		s.Health, s.Message, s.Details = a.health.State, a.health.Reason, a.health.Metadata
		v.tellMounts(s, caps)
		s.Capacity, s.Performance = a.capacity, a.performance
		return nil
	})
}

// refresh calls the plugin for values that are too old.
func (v *Volume) refresh(ctx context.Context, c *plugin.Client, caps *volumepb.OpenVolumeResponse) error {
	if v.told.from != c {
		v.told = answers{from: c}
	}
	a, ref, now := &v.told, &volumepb.VolumeRef{Volume: v.cfg.Name}, time.Now()
	if now.Sub(a.healthAt) >= healthAge {
		h, err := c.Health(ctx, ref)
		if err != nil {
			return err
		}
		a.health, a.healthAt = h, now
	}
	if has(caps, volumepb.Capability_CAPACITY) && now.Sub(a.capacityAt) >= capacityAge {
		size, err := c.Capacity(ctx, ref)
		if err != nil {
			return err
		}
		if size.TotalBytes < 0 || size.UsedBytes < 0 || !size.Elastic && size.UsedBytes > size.TotalBytes {
			return fmt.Errorf("the plugin reports %d of %d bytes used: %w", size.UsedBytes, size.TotalBytes, errdefs.ErrInternal)
		}
		a.capacity, a.capacityAt = size, now
	}
	if has(caps, volumepb.Capability_METRICS) && now.Sub(a.performedAt) >= healthAge {
		p, err := c.Performance(ctx, ref)
		if err == nil {
			err = checkRates(p)
		}
		if err != nil { // optional: the volume works without it
			v.log.Debug("performance", "error", err)
			p = nil
		}
		a.performance, a.performedAt = p, now
	}
	return nil
}

// checkRates rejects values that cannot be rates.
func checkRates(p *volumepb.PerformanceSample) error {
	for _, rate := range []*float64{
		p.ReadOpsPerSecond, p.WriteOpsPerSecond, p.ReadBytesPerSecond, p.WriteBytesPerSecond, p.ReadLatencyUs, p.WriteLatencyUs,
	} {
		if rate != nil && (*rate < 0 || math.IsNaN(*rate) || math.IsInf(*rate, 0)) {
			return fmt.Errorf("the plugin reports a rate of %v: %w", *rate, errdefs.ErrInternal)
		}
	}
	return nil
}
