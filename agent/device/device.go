// Package device manages the devices that a node offers to kernels: cpu and mem, which every node
// has, and the devices of accelerator plugins. It checks each allocation of the manager against the
// devices and the existing allocations, and converts it into edits of a container. Allocations are
// recovered from the kernels' records on disk, so plugins can be killed at any time without losing
// them.
package device

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"
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

	mu      sync.Mutex
	views   map[string]view // by plugin key; "" = intrinsic
	amounts map[string][]slotAmount
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
		cfg: cfg, awayTimeout: awayTimeout, hangTimeout: hangTimeout, nodes: list, pins: pinnable(cfg.Sysfs), views: map[string]view{"": base}, amounts: map[string][]slotAmount{},
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

// AwaitReports waits until every plugin has reported its devices or failed to start, at most until the
// limit.
func (m *Manager) AwaitReports(ctx context.Context, limit time.Duration) {
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

// PluginConfig configures one accelerator plugin of this node.
type PluginConfig struct {
	Path       string
	SHA256     string // of the program; "" skips the check
	ConfigJSON []byte
	Force      bool     // start the plugin even if no hardware of its vendor is on the PCI bus
	Plain      bool     // the plugin cannot use go-plugin's TLS: only the mode of the socket's directory protects the connection
	Env        []string // added to the plugin's environment
	// Roots are the directories of the machine's files, for the plugin and for the scan of the PCI
	// bus; nil and empty select the usual ones. Roots.State must be empty: the agent chooses it.
	Roots *acceleratorpb.Roots
	Allow Allow
}

// Allow lists what a plugin's edits can request beyond devices, mounts and environment. Everything
// in it weakens the isolation of a container, so it is empty by default.
type Allow struct {
	HostIPC      bool     `yaml:"hostIpc"`
	Capabilities []string `yaml:"capabilities"`
	Syscalls     []string `yaml:"syscalls"`
	Sysctls      []string `yaml:"sysctls"`
	Networks     []string `yaml:"networks"`
	// Mounts are directories outside the plugin's roots. Paths below them can be mounted, also
	// writable.
	Mounts []string `yaml:"mounts"`
}

// entry is a plugin in the operator's file.
type entry struct {
	Path   string            `yaml:"path"`
	SHA256 string            `yaml:"sha256"`
	Config map[string]any    `yaml:"config"`
	Force  bool              `yaml:"force"`
	Plain  bool              `yaml:"plain"`
	Env    map[string]string `yaml:"env"`
	Roots  struct {
		Sys    string   `yaml:"sys"`
		Dev    string   `yaml:"dev"`
		Proc   string   `yaml:"proc"`
		Driver string   `yaml:"driver"`
		Path   []string `yaml:"path"`
	} `yaml:"roots"`
	Allow Allow `yaml:"allow"`
}

// ReadPlugins parses the operator's file of plugins.
func ReadPlugins(file string) ([]PluginConfig, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all struct {
		Plugins []entry `yaml:"plugins"`
	}
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", file, yaml.FormatError(err, false, false), errdefs.ErrInvalidArgument)
	}
	var list []PluginConfig
	for i, e := range all.Plugins {
		cfg, err := e.config()
		if err != nil {
			return nil, fmt.Errorf("%s: plugins[%d].%w", file, i, err)
		}
		list = append(list, cfg)
	}
	return list, nil
}

var sha256Form = regexp.MustCompile(`^([0-9a-f]{64})?$`)

func (e entry) config() (PluginConfig, error) {
	if !sha256Form.MatchString(e.SHA256) {
		return PluginConfig{}, fmt.Errorf("sha256: %.80q: want 64 of 0-9 a-f: %w", e.SHA256, errdefs.ErrInvalidArgument)
	}
	roots := &acceleratorpb.Roots{Sys: e.Roots.Sys, Dev: e.Roots.Dev, Proc: e.Roots.Proc, Driver: e.Roots.Driver, Path: e.Roots.Path}
	err := errors.Join(
		absolute("path", e.Path),
		absolute("roots.sys", roots.Sys, ""), absolute("roots.dev", roots.Dev, ""),
		absolute("roots.proc", roots.Proc, ""), absolute("roots.driver", roots.Driver, ""),
	)
	for _, p := range roots.Path {
		err = errors.Join(err, absolute("roots.path", p))
	}
	for _, p := range e.Allow.Mounts {
		err = errors.Join(err, absolute("allow.mounts", p))
	}
	if err != nil {
		return PluginConfig{}, err
	}
	cfg := PluginConfig{Path: e.Path, SHA256: e.SHA256, Force: e.Force, Plain: e.Plain, Roots: roots, Allow: e.Allow}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		cfg.Env = append(cfg.Env, name+"="+e.Env[name])
	}
	if len(e.Config) > 0 {
		cfg.ConfigJSON, err = json.Marshal(e.Config)
	}
	return cfg, err
}

// absolute returns an error if a path is not absolute, unless it is one of the exceptions.
func absolute(field, path string, except ...string) error {
	if filepath.IsAbs(path) && filepath.Clean(path) == path || slices.Contains(except, path) {
		return nil
	}
	return fmt.Errorf("%s: %.200q: must be a clean absolute path: %w", field, path, errdefs.ErrInvalidArgument)
}
