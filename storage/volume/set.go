package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/pluginhost"
	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// checkEvery is the pause between two checks of every volume. A plugin that starts or stops
// triggers a check at once.
const checkEvery = 2 * time.Second

// longestSockets leaves space for two names in the 107 bytes of a socket's path.
const longestSockets = 64

// Set is the volumes of one proxy and their plugin processes, one for each program. NewSet
// creates one.
type Set struct {
	volumes []*Volume
	hosts   []*pluginhost.Host[*plugin.Client]
	sockets string // directory of the plugins' sockets; "": the system's default
	wake    chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change of a state
}

// NewSet checks the configuration. dir stores the identity of each volume.
func NewSet(dir string, configs []Config, log *slog.Logger) (*Set, error) {
	s := &Set{wake: make(chan struct{}, 1), changed: make(chan struct{})}
	// The directory is the proxy's own, so that a restart after a crash finds and removes old
	// sockets.
	if own := filepath.Join(dir, "run"); len(own) <= longestSockets {
		s.sockets = own
	}
	hosts := make(map[string]*pluginhost.Host[*plugin.Client])
	seen := make(map[string]bool)
	for _, c := range configs {
		if err := c.check(); err != nil {
			return nil, err
		}
		if seen[c.Name] {
			return nil, invalid("volume %s: is configured twice", c.Name)
		}
		seen[c.Name] = true
		key := c.Backend + "\x00" + c.SHA256
		if hosts[key] == nil {
			hosts[key] = s.host(c, log)
		}
		v := &Volume{
			cfg: c, host: hosts[key], log: log.With("volume", c.Name),
			identity: identity{
				name: c.Name, mount: filepath.Clean(c.MountPath), create: c.Create, bare: c.ScopeMount != nil,
				guard: confine.NewMount(filepath.Clean(c.MountPath), log.With("volume", c.Name)),
				state: filepath.Join(dir, "volumes", c.Name),
			},
			slots:  make(chan struct{}, inFlight),
			limits: make(map[string]*volumepb.Scope),
			shut:   make(map[string]bool),
			state: State{
				Name: c.Name, Health: volumepb.HealthReport_UNAVAILABLE, Message: "not checked yet",
			},
		}
		v.mountScopes()
		s.volumes = append(s.volumes, v)
	}
	return s, nil
}

func (s *Set) host(c Config, log *slog.Logger) *pluginhost.Host[*plugin.Client] {
	name := filepath.Base(c.Backend)
	h := pluginhost.New(pluginhost.Config[*plugin.Client]{
		Name: name,
		Launch: func(ctx context.Context) (*plugin.Client, error) {
			p, err := plugin.Launch(ctx, plugin.Options{Path: c.Backend, SHA256: c.SHA256, SocketDir: s.sockets, Logger: log.With("plugin", name)})
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, plugin.ErrChecksum) {
				return nil, errors.Join(err, pluginhost.ErrDisable)
			}
			return p, err
		},
		Probe:    func(ctx context.Context, p *plugin.Client) error { return p.Ping(ctx) },
		OnChange: func(pluginhost.Status) { s.poke() },
		Logger:   log,
	})
	s.hosts = append(s.hosts, h)
	return h
}

// Run keeps the plugins running and the states current until the context ends. It leaves no
// plugin process behind.
func (s *Set) Run(ctx context.Context) error {
	if s.sockets != "" {
		if err := errors.Join(os.RemoveAll(s.sockets), os.MkdirAll(s.sockets, 0o700)); err != nil {
			return fmt.Errorf("directory of sockets: %w", err)
		}
	}
	var wg sync.WaitGroup
	for _, h := range s.hosts {
		wg.Go(func() { _ = h.Run(ctx) }) // the state shows a disabled plugin
	}
	wg.Go(func() { s.watch(ctx) })
	for _, v := range s.volumes {
		if v.mounts != nil {
			wg.Go(func() { v.mounts.Run(ctx) })
		}
	}
	wg.Wait()
	return nil
}

// Release removes the restrictions of the volumes' mounts when no operation is running: an
// operation would restrict a volume again, and an open file would keep its mount busy.
func (s *Set) Release() {
	for _, v := range s.volumes {
		v.identity.guard.Release()
	}
}

func (s *Set) watch(ctx context.Context) {
	ticks := time.NewTicker(checkEvery)
	defer ticks.Stop()
	for {
		var wg sync.WaitGroup
		for _, v := range s.volumes {
			wg.Go(func() {
				if v.check(ctx) {
					s.notify()
				}
			})
		}
		wg.Wait()
		select {
		case <-ticks.C:
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Set) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Set) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of a volume's state.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// All returns the volumes in the order of the configuration.
func (s *Set) All() []*Volume { return s.volumes }

// Get returns a volume by name.
func (s *Set) Get(name string) (*Volume, error) {
	for _, v := range s.volumes {
		if v.cfg.Name == name {
			return v, nil
		}
	}
	return nil, fmt.Errorf("volume %q: %w", name, errdefs.ErrNotFound)
}

// gauge is one value of a volume's state; nil means unknown, and such a gauge is not exported.
type gauge struct {
	desc *prometheus.Desc
	read func(State) *float64
}

func describe(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("berth_storage_volume_"+name, help, append([]string{"volume"}, more...), nil)
}

var healthDesc = describe("health", "1 for the state a volume is in.", "state")

// gauges show the values of the last query; a scrape never calls the product.
var gauges = []gauge{
	ofCapacity("total_bytes", "Size; not exported for an elastic volume.", func(c *volumepb.CapacityReport) *float64 {
		if c.Elastic {
			return nil
		}
		return float(&c.TotalBytes)
	}),
	ofCapacity("used_bytes", "Bytes in use.", func(c *volumepb.CapacityReport) *float64 { return float(&c.UsedBytes) }),
	ofCapacity("available_bytes", "Free bytes for users.", func(c *volumepb.CapacityReport) *float64 { return float(&c.AvailableBytes) }),
	ofCapacity("total_inodes", "Largest number of files.", func(c *volumepb.CapacityReport) *float64 { return float(c.TotalInodes) }),
	ofCapacity("used_inodes", "Number of files.", func(c *volumepb.CapacityReport) *float64 { return float(c.UsedInodes) }),
	ofRates("read_ops_per_second", "Reads per second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.ReadOpsPerSecond }),
	ofRates("write_ops_per_second", "Writes per second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.WriteOpsPerSecond }),
	ofRates("read_bytes_per_second", "Bytes read per second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.ReadBytesPerSecond }),
	ofRates("write_bytes_per_second", "Bytes written per second.", 1, func(p *volumepb.PerformanceSample) *float64 { return p.WriteBytesPerSecond }),
	ofRates("read_latency_seconds", "Mean duration of a read.", 1e-6, func(p *volumepb.PerformanceSample) *float64 { return p.ReadLatencyUs }),
	ofRates("write_latency_seconds", "Mean duration of a write.", 1e-6, func(p *volumepb.PerformanceSample) *float64 { return p.WriteLatencyUs }),
}

func ofCapacity(name, help string, read func(*volumepb.CapacityReport) *float64) gauge {
	return gauge{describe(name, help), func(s State) *float64 {
		if s.Capacity == nil {
			return nil
		}
		return read(s.Capacity)
	}}
}

func ofRates(name, help string, unit float64, read func(*volumepb.PerformanceSample) *float64) gauge {
	return gauge{describe(name, help), func(s State) *float64 {
		if s.Performance == nil {
			return nil
		}
		v := read(s.Performance)
		if v == nil {
			return nil
		}
		scaled := *v * unit
		return &scaled
	}}
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(out chan<- *prometheus.Desc) {
	out <- healthDesc
	for _, g := range gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (s *Set) Collect(out chan<- prometheus.Metric) {
	for _, v := range s.volumes {
		state := v.State()
		for h, name := range map[volumepb.HealthReport_State]string{
			volumepb.HealthReport_HEALTHY: "healthy", volumepb.HealthReport_DEGRADED: "degraded", volumepb.HealthReport_UNAVAILABLE: "unavailable",
		} {
			is := 0.0
			if state.Health == h {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(healthDesc, prometheus.GaugeValue, is, v.Name(), name)
		}
		for _, g := range gauges {
			if f := g.read(state); f != nil {
				out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, *f, v.Name())
			}
		}
	}
}
