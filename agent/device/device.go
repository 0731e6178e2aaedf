// Package device manages the devices that a node offers to kernels: cpu and mem, which every node
// has, and the devices of accelerator plugins. It checks each allocation of the manager against the
// devices and the existing allocations, and converts it into edits of a container. Allocations are
// recovered from the kernels' records on disk, so plugins can be killed at any time without losing
// them.
package device

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/pluginhost"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Config configures a Manager.
type Config struct {
	Dir         string // of the plugins' state, sockets and work directories
	Node        string // name of the node
	Version     string // of the agent
	Incarnation string
	Reserve     resource.Slots // cpu and mem that are not offered to kernels
	Sysfs       string         // describes the hardware of the machine; empty = /sys
	Plugins     []PluginConfig
	OnChange    func() // called after devices or plugins have changed
	Logger      *slog.Logger
}

// Manager manages the node's devices.
type Manager struct {
	cfg     Config
	plugins []*plugin
	// awayTimeout is how long a plugin may be down before its devices are withheld.
	awayTimeout time.Duration
	// hangTimeout is how long a plugin may hang before it is restarted.
	hangTimeout time.Duration
	nodes       []node // NUMA nodes; empty if there is only one
	pins        bool   // cgroups can restrict containers to NUMA nodes

	mu    sync.Mutex
	views map[string]view // by plugin key; "" = intrinsic
	held  map[string][]holding
	// prepared has the allocations to send to a plugin when it starts.
	prepared  map[allocation]*acceleratorpb.LiveAllocation
	preparing map[allocation]chan struct{} // closed when the plugin has responded
	// owed has the allocations that could not be undone because their plugin was not running.
	owed map[allocation]*acceleratorpb.UnprepareRequest

	admission sync.Mutex // serializes the admission of plugins
}

// allocation identifies the devices that one kernel has from one plugin.
type allocation struct{ plugin, id string }

// view is the last valid snapshot of a plugin's devices.
type view struct {
	slots    []*agentpb.SlotType
	devices  []*agentpb.Device
	counters map[string]map[string]int64 // by counter set: its capacity of each counter
	sets     []*agentpb.CounterSet       // the same in the format of reports
	links    []*agentpb.Link
}

// New reads the machine's cpu and memory. Run starts the plugins.
func New(cfg Config) (*Manager, error) {
	cfg.Sysfs = cmp.Or(cfg.Sysfs, Sysfs)
	list, err := nodes(cfg.Sysfs, runtime.NumCPU())
	if err != nil {
		return nil, err
	}
	base, err := intrinsic(cfg.Reserve, list)
	if err != nil {
		return nil, err
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func() {}
	}
	m := &Manager{
		cfg: cfg, awayTimeout: awayTimeout, hangTimeout: hangTimeout, nodes: list, pins: pinnable(cfg.Sysfs), views: map[string]view{"": base}, held: map[string][]holding{},
		prepared: map[allocation]*acceleratorpb.LiveAllocation{}, preparing: map[allocation]chan struct{}{},
		owed: map[allocation]*acceleratorpb.UnprepareRequest{},
	}
	for _, p := range cfg.Plugins {
		m.plugins = append(m.plugins, newPlugin(m, p))
	}
	return m, nil
}

// Run keeps the plugins running until the context ends.
func (m *Manager) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range m.plugins {
		wg.Go(func() { p.run(ctx) })
	}
	wg.Wait()
}

// Settle waits until every plugin has reported its devices or failed to start, at most until the
// limit.
func (m *Manager) Settle(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for m.starting() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// starting reports whether any plugin has not reported its devices yet.
func (m *Manager) starting() bool {
	for _, p := range m.plugins {
		switch p.host.Status().State {
		case pluginhost.Starting:
			return true
		case pluginhost.Running:
			m.mu.Lock()
			_, shown := m.views[p.Key()]
			m.mu.Unlock()
			if !shown && p.complained() == "" {
				return true
			}
		}
	}
	return false
}

// awayTimeout is the default of Manager.awayTimeout. It is longer than the maximum back-off before
// a plugin that died is restarted, which is 30 s.
const awayTimeout = time.Minute

// Describe adds the devices, slots and plugins to a report.
func (m *Manager) Describe(r *agentpb.Report) {
	away := map[string]string{}
	for _, p := range m.plugins {
		if key, why := p.Key(), p.away(m.awayTimeout); key != "" && why != "" {
			away[key] = why
		}
	}
	m.mu.Lock()
	for _, key := range m.keys() {
		r.SlotTypes = append(r.SlotTypes, m.views[key].slots...)
		r.Devices = append(r.Devices, withheld(m.views[key].devices, away[key])...)
		r.Counters = append(r.Counters, m.views[key].sets...)
		r.Links = append(r.Links, m.views[key].links...)
	}
	m.mu.Unlock()
	for _, p := range m.plugins {
		if st := p.status(); st != nil {
			r.Plugins = append(r.Plugins, st)
		}
	}
}

// Plugins returns the states of the plugins' processes, by the names of their programs. It omits
// plugins whose hardware the machine lacks.
func (m *Manager) Plugins() map[string]pluginhost.Status {
	all := map[string]pluginhost.Status{}
	for _, p := range m.plugins {
		if p.status() != nil {
			all[p.name] = p.host.Status()
		}
	}
	return all
}

// withheld returns the devices with a reason why they are not available for new kernels; "" returns
// them unchanged.
func withheld(devices []*agentpb.Device, why string) []*agentpb.Device {
	if why == "" {
		return devices
	}
	out := make([]*agentpb.Device, len(devices))
	for i, d := range devices {
		out[i] = proto.Clone(d).(*agentpb.Device)
		out[i].Allocatable, out[i].RejectReasons = false, append(out[i].RejectReasons, why)
	}
	return out
}

// keys returns the sorted keys of the plugins. The intrinsic devices come first.
func (m *Manager) keys() []string {
	keys := make([]string, 0, len(m.views))
	for k := range m.views {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// pluginOf splits a device id of a report: "mock:gpu-0" is device gpu-0 of the plugin mock. An id
// without a colon is intrinsic.
func pluginOf(id string) (key, local string) {
	if key, local, ok := strings.Cut(id, ":"); ok {
		return key, local
	}
	return "", id
}
