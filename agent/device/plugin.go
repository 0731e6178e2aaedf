package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/pluginhost"
	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// plugin is one plugin process and its latest state.
type plugin struct {
	m    *Manager
	cfg  PluginConfig
	name string // of the program
	host *pluginhost.Host[*accelerator.Client]

	mu        sync.Mutex
	key       string
	version   string
	families  []string
	absent    bool   // the machine has no hardware of its vendor
	complaint string // why the last snapshot was refused
	node      []*acceleratorpb.Metric
	workloads map[string]*acceleratorpb.WorkloadMetrics
	measured  time.Time // time of the workloads' metrics
	down      time.Time // since when the process is down; zero while it runs
	gaveUp    bool      // it is no longer restarted
	wanted    []*acceleratorpb.Workload
	changed   chan struct{} // signals that the set of workloads has changed
	look      *acceleratorpb.Look
	hanging   *time.Timer // kills a process whose scan hangs
	checks    []*agentpb.PluginCheck
	recheck   chan struct{} // signals that the preflight must run again
	revive    chan struct{} // signals that a plugin that was given up must be started
}

func newPlugin(m *Manager, cfg PluginConfig) *plugin {
	p := &plugin{m: m, cfg: cfg, name: filepath.Base(cfg.Path), changed: make(chan struct{}, 1), recheck: make(chan struct{}, 1), revive: make(chan struct{}, 1)}
	p.host = pluginhost.New(pluginhost.Config[*accelerator.Client]{
		Name: p.name, Logger: m.cfg.Logger,
		Launch:   p.launch,
		Ready:    p.ready,
		Probe:    func(ctx context.Context, c *accelerator.Client) error { return c.Ping(ctx) },
		OnChange: func(s pluginhost.Status) { p.note(s); m.cfg.OnChange() },
	})
	return p
}

// note records since when the process is down.
func (p *plugin) note(s pluginhost.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.State == pluginhost.Running {
		p.down = time.Time{}
	} else if p.down.IsZero() {
		p.down = s.Since
	}
}

// away returns why the plugin's devices are not available for new kernels: it is no longer
// restarted, or it has been down for longer than a restart takes. It returns "" otherwise.
func (p *plugin) away(timeout time.Duration) string {
	s := p.host.Status()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gaveUp && (p.down.IsZero() || time.Since(p.down) < timeout) {
		return ""
	}
	return fmt.Sprintf("plugin %s does not run: %s", p.name, s.Message)
}

// run keeps the process and its streams running. A plugin that was given up is shown in the report,
// and runs again after Restart.
func (p *plugin) run(ctx context.Context) {
	for {
		var wg sync.WaitGroup
		wg.Go(func() { p.listen(ctx) })
		err := p.host.Run(ctx)
		wg.Wait()
		if err == nil {
			return
		}
		p.abandon(true)
		select {
		case <-ctx.Done():
			return
		case <-p.revive:
		}
		p.host.Revive()
		p.abandon(false)
	}
}

// abandon records whether the plugin was given up.
func (p *plugin) abandon(gaveUp bool) {
	p.mu.Lock()
	p.gaveUp = gaveUp
	p.mu.Unlock()
	p.m.cfg.OnChange()
}

func (p *plugin) launch(ctx context.Context) (*accelerator.Client, error) {
	if why := p.knownAbsence(); why != "" {
		return nil, fmt.Errorf("%s: %w", why, pluginhost.ErrDisable)
	}
	sockets := filepath.Join(p.m.cfg.Dir, "s")
	if err := os.MkdirAll(sockets, 0o700); err != nil {
		return nil, err
	}
	c, err := accelerator.Launch(ctx, accelerator.Options{
		Path: p.cfg.Path, SHA256: p.cfg.SHA256, Plain: p.cfg.Plain, Env: p.cfg.Env, SocketDir: sockets, Logger: p.m.cfg.Logger,
	}, &acceleratorpb.DescribeRequest{AgentVersion: p.m.cfg.Version, NodeName: p.m.cfg.Node, Incarnation: p.m.cfg.Incarnation})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", pluginhost.ErrDisable, err)
	}
	if err != nil {
		return nil, err
	}
	if why := p.admit(c.Description); why != "" {
		return nil, errors.Join(fmt.Errorf("%s: %w", why, pluginhost.ErrDisable), c.Close())
	}
	return c, nil
}

// admit records the identity of the plugin, or returns the reason why it must not run.
func (p *plugin) admit(d *acceleratorpb.DescribeResponse) string {
	p.m.admission.Lock() // of two plugins with the same key that start together, only one is admitted
	defer p.m.admission.Unlock()
	for _, other := range p.m.plugins {
		if other == p {
			continue
		}
		for _, name := range append([]string{d.Key}, d.Families...) {
			if other.owns(name) {
				return fmt.Sprintf("%s has the name %q already", other.name, name)
			}
		}
	}
	p.keep(d)
	if why := p.absence(d.Vendor, d.PciVendors); why != "" {
		return why
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.version, p.families = d.Key, d.PluginVersion, d.Families
	return ""
}

// owns reports whether slots that begin with the name belong to the plugin.
func (p *plugin) owns(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key == name || slices.Contains(p.families, name)
}

// Key returns the key of the plugin, or "" until it has been admitted.
func (p *plugin) Key() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key
}

// ready configures a new process and sends it the live allocations.
func (p *plugin) ready(ctx context.Context, c *accelerator.Client) error {
	roots := &acceleratorpb.Roots{}
	proto.Merge(roots, p.cfg.Roots)
	roots.State = p.m.state(c.Description.Key)
	if err := os.MkdirAll(roots.State, 0o700); err != nil {
		return err
	}
	resp, err := c.Configure(ctx, &acceleratorpb.ConfigureRequest{ConfigJson: p.cfg.ConfigJSON, Roots: roots})
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	for _, w := range resp.Warnings {
		p.m.cfg.Logger.Warn("plugin's configuration", "plugin", p.name, "warning", w)
	}
	restored, err := c.Restore(ctx, &acceleratorpb.RestoreRequest{Live: p.m.live(c.Description.Key)})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, r := range restored.Problems {
		p.m.cfg.Logger.Warn("allocation not restored", "plugin", p.name, "id", r.AllocationId, "device", r.DeviceId, "error", r.Message)
	}
	for _, l := range restored.LeaksRemoved {
		p.m.cfg.Logger.Info("leak removed", "plugin", p.name, "leak", l)
	}
	return nil
}

// listen follows the streams of each process of the plugin in turn.
func (p *plugin) listen(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := p.host.Wait(ctx)
		if err != nil {
			return // disabled, or the context has ended
		}
		life, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { p.m.undoOwed(life, c) })
		wg.Go(func() { p.examine(life, c) })
		for _, follow := range []func(context.Context, *accelerator.Client) error{p.devices, p.health, p.nodeMetrics, p.workloadMetrics} {
			wg.Go(func() { p.again(life, c, follow) })
		}
		select {
		case <-c.Done():
		case <-ctx.Done():
		}
		cancel()
		wg.Wait()
		p.forget()
	}
}

// again reopens a stream whenever it breaks, for as long as the process lives.
func (p *plugin) again(ctx context.Context, c *accelerator.Client, follow func(context.Context, *accelerator.Client) error) {
	for {
		err := follow(ctx, c)
		if err == nil || ctx.Err() != nil {
			return // not offered, or the context has ended
		}
		p.m.cfg.Logger.Debug("plugin's stream ended", "plugin", p.name, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-c.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func offers(c *accelerator.Client, capability acceleratorpb.Capability) bool {
	return slices.Contains(c.Description.Capabilities, capability)
}

func (p *plugin) devices(ctx context.Context, c *accelerator.Client) error {
	stream, err := c.WatchDevices(ctx, &acceleratorpb.WatchDevicesRequest{})
	if err != nil {
		return err
	}
	for {
		snapshot, err := stream.Recv()
		if err != nil {
			p.complain("devices not reported: " + err.Error())
			return err
		}
		complaint := ""
		if err := accelerator.Validate(c.Description, snapshot); err != nil {
			// The previous snapshot stays: a faulty plugin must not remove the devices of running
			// kernels or offer devices that do not exist.
			complaint = "snapshot refused: " + err.Error()
			p.m.cfg.Logger.Error("plugin's snapshot refused", "plugin", p.name, "error", err)
		} else {
			p.scanned(snapshot.GetLook())
			p.m.show(c.Description.Key, c.Description.Vendor, snapshot)
		}
		p.complain(complaint)
		p.m.cfg.OnChange()
	}
}

func (p *plugin) health(ctx context.Context, c *accelerator.Client) error {
	if !offers(c, acceleratorpb.Capability_CAPABILITY_HEALTH) {
		return nil
	}
	stream, err := c.WatchHealth(ctx, &acceleratorpb.WatchHealthRequest{})
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			return err
		}
		p.m.cfg.Logger.Warn("device health", "plugin", p.name, "device", e.DeviceId, "health", e.Health, "code", e.Code, "message", e.Message)
		if p.m.ail(c.Description.Key+":"+e.DeviceId, e) {
			p.m.cfg.OnChange()
		}
	}
}

func (p *plugin) complain(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaint = text
}

func (p *plugin) complained() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.complaint
}

// status returns the plugin's state for the report. It is nil for a plugin whose hardware the
// machine lacks.
func (p *plugin) status() *agentpb.Plugin {
	s := p.host.Status()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.absent {
		return nil
	}
	out := &agentpb.Plugin{Name: p.key, Version: p.version, State: states[s.State], Message: s.Message, Restarts: uint32(s.Restarts)}
	if out.Name == "" {
		out.Name = p.name
	}
	if out.Message == "" {
		out.Message = cmp.Or(p.complaint, p.look.GetMessage())
	}
	if s.State == pluginhost.Running {
		out.Checks = p.checks
	}
	return out
}

var states = map[pluginhost.State]agentpb.Plugin_State{
	pluginhost.Starting: agentpb.Plugin_STARTING, pluginhost.Running: agentpb.Plugin_RUNNING,
	pluginhost.Backoff: agentpb.Plugin_BACKOFF, pluginhost.Disabled: agentpb.Plugin_DISABLED,
}
