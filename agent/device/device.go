// Package device knows what a node can give to kernels: cpu and mem, which
// every node has, and the devices of accelerator plugins. It checks every
// allocation that the manager asks for against what is there and what is held,
// and turns it into edits of a container. Who holds what follows from the
// kernels' records on disk; plugins have no say in it and may be killed at any
// time.
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

// Config of a Manager.
type Config struct {
	Dir         string // plugins' state and sockets, and work directories
	Node        string // name of the node
	Version     string // of the agent
	Incarnation string
	Reserve     resource.Slots // kept from kernels: cpu, mem
	Sysfs       string         // what the machine is made of is read there; /sys when empty
	Plugins     []PluginConfig
	OnChange    func() // devices or plugins are no longer what they were
	Logger      *slog.Logger
}

// Manager owns the node's devices.
type Manager struct {
	cfg     Config
	plugins []*plugin
	// awayTimeout is how long a plugin may be away before its devices are not given away.
	awayTimeout time.Duration
	// hangTimeout is how long a plugin may hang before it is restarted.
	hangTimeout time.Duration
	nodes       []node // NUMA nodes; none where there is but one
	pins        bool   // containers can be kept to them

	mu    sync.Mutex
	views map[string]view // by plugin key, "" = intrinsic
	held  map[string][]holding
	// What a plugin that starts must know.
	prepared  map[allocation]*acceleratorpb.LiveAllocation
	preparing map[allocation]chan struct{} // closed when the plugin has answered
	// What a plugin was not there to undo.
	owed map[allocation]*acceleratorpb.UnprepareRequest

	admission sync.Mutex // plugins are admitted one after the other
}

// allocation is what one kernel has of one plugin.
type allocation struct{ plugin, id string }

// view is the last good picture of one plugin's devices.
type view struct {
	slots    []*agentpb.SlotType
	devices  []*agentpb.Device
	counters map[string]map[string]int64 // by set: what it has of each
	sets     []*agentpb.CounterSet       // the same as reported
	links    []*agentpb.Link
}

// New takes stock of cpu and mem. Run starts the plugins.
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

// Settle waits until every plugin has shown its devices, or cannot.
func (m *Manager) Settle(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for m.starting() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// starting reports whether some plugin has yet to say what it has.
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

// awayTimeout is that of a Manager: half a minute is the longest pause before a plugin
// that died is started again.
const awayTimeout = time.Minute

// Describe fills in what a report says about devices.
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

// Plugins returns how the processes of the plugins are, by the names of the programs.
// Those for hardware that the machine does not have are left out.
func (m *Manager) Plugins() map[string]pluginhost.Status {
	all := map[string]pluginhost.Status{}
	for _, p := range m.plugins {
		if p.status() != nil {
			all[p.name] = p.host.Status()
		}
	}
	return all
}

// withheld is devices that nothing new may have, and why; "" leaves them as they are.
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

// keys lists the plugins in order, the intrinsic devices first.
func (m *Manager) keys() []string {
	keys := make([]string, 0, len(m.views))
	for k := range m.views {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// pluginOf splits a device id of a report: mock:gpu-0 is mock's gpu-0, and
// what has no colon is intrinsic.
func pluginOf(id string) (key, local string) {
	if key, local, ok := strings.Cut(id, ":"); ok {
		return key, local
	}
	return "", id
}
