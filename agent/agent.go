// Package agent runs kernels on one node. It manages the node's devices, their plugins and the
// kernels, and serves managers over connections that it opens itself. Containers and their records
// survive a restart of the agent, also after SIGKILL. Only cmd/berthd and the tests of whole
// clusters import it.
package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/condition"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/disk"
	"github.com/berthhq/berth/agent/kernel"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/probe"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/stats"
	"github.com/berthhq/berth/agent/trust"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/netlist"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/scopemount"
)

// PluginConfig configures an accelerator plugin of this node.
type PluginConfig = device.PluginConfig

// Config configures an agent. Paths are absolute.
type Config struct {
	Name    string // of the node, unique in the cluster
	Dir     string // for the agent's state
	Version string // of the program; managers and plugins see it

	// Managers are addresses; JoinToken lets the agent join the cluster once. Without managers
	// the agent only serves GRPCServer on connections that the caller provides.
	Managers      []string
	JoinToken     string
	CAFingerprint string

	Volumes map[string]string // volume name to path on this host
	// ScopeMounts says how to mount the quota scopes of a volume whose scopes are separate file
	// systems. Scopes of other volumes are not mounted.
	ScopeMounts   map[string]scopemount.Rule
	Plugins       []PluginConfig
	Reserve       resource.Slots // not offered to kernels
	Sysfs         string         // describes the hardware of the machine; empty = /sys
	ResourceGroup string         // requested at the first registration
	Address       string         // of the node, shown to people
	Zone          string         // such as a room or a data center; gateways prefer replicas in their own

	ContainerdSocket string
	ShimPath         string
	RuncPath         string
	RunnerPath       string
	BuilderPath      string       // berth-builder; "" = the agent builds no images
	CABundle         string       // PEM file of the authorities that containers trust; "" = those of their images
	LazyCommand      []string     // that runs lazy.Main; nil = images are pulled as a whole
	Subnet           netip.Prefix // of the kernels; zero = network.DefaultSubnet
	// Overlay is the address to which other agents send overlay traffic: an IP address, a port or
	// both. The default address is the local one of the connection to the managers, the default
	// port is network.DefaultPort. OverlayOff disables the overlay.
	Overlay string
	// AllowNetworks are private networks that containers can reach; DenyNetworks are further
	// networks that they cannot. See network.Config.
	AllowNetworks []netlist.Entry
	DenyNetworks  []netip.Prefix
	PidsLimit     int64 // of each kernel; 0 = kernel.DefaultPids
	LogFileBytes  int64 // size at which a kernel's log is rotated
	LogFiles      int   // number of log files kept for a kernel
	// EndedKernels and EndedLogBytes limit what is retained of ended kernels; 0 =
	// kernel.DefaultEndedKernels and kernel.DefaultEndedLogBytes.
	EndedKernels  int
	EndedLogBytes int64

	// Conditions are the thresholds below which the agent accepts no new kernels.
	Conditions condition.Limits

	Images ImageConfig // how images reach the node

	StatsInterval time.Duration        // 0 = 5 s
	KeepSessions  bool                 // a clean stop leaves kernels running
	Registry      *prometheus.Registry // nil disables metrics
	Logger        *slog.Logger

	// Runtime, Network and Builders replace the real ones in tests that need no containers.
	Runtime  runtime.Runtime
	Network  kernel.Network
	Builders kernel.Builders
}

// OverlayOff as Config.Overlay excludes this agent from sessions that span several agents.
const OverlayOff = "off"

const (
	defaultStats   = 5 * time.Second
	heartbeatEvery = 3 * time.Second
	pluginStart    = 5 * time.Second
	// stopTimeout covers the grace period of a kernel, its SIGKILL, and its clean-up.
	stopTimeout = 30 * time.Second
)

// Agent is one agent. Create it with New and call Run once.
type Agent struct {
	cfg         Config
	id          string
	incarnation string
	log         *slog.Logger
	server      *grpc.Server
	node        *cluster.Node // nil without managers
	hub         *hub
	pulls       *pulls
	meter       *meter
	probes      []*agentpb.Probe
	builders    *build.Builders // nil if this agent builds no images
	volumes     mount.Volumes
	ready       chan struct{}

	// These fields are set before ready is closed.
	runtime runtime.Runtime
	network kernel.Network
	monitor *condition.Monitor
	disks   *disk.Disks // nil without containers
	devices *device.Manager
	kernels *kernel.Manager
	stats   *stats.Collector

	exchange *exchange
	cleaner  *cleaner
}

// New prepares an agent. It changes nothing on the host except the agent's directory.
func New(cfg Config) (*Agent, error) {
	if cfg.Name == "" || !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("agent %q in %q: it needs a name and an absolute directory: %w", cfg.Name, cfg.Dir, errdefs.ErrInvalidArgument)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StatsInterval <= 0 {
		cfg.StatsInterval = defaultStats
	}
	if err := cfg.Images.Cleanup.check(); err != nil {
		return nil, err
	}
	if cfg.CABundle != "" {
		if err := trust.Check(cfg.CABundle); err != nil {
			return nil, err
		}
	}
	if err := confine.Directory(cfg.Dir, 0o700); err != nil { // the containers' writable layers are below it
		return nil, err
	}
	id, err := identity(filepath.Join(cfg.Dir, "id"))
	if err != nil {
		return nil, err
	}
	a := &Agent{
		cfg: cfg, id: id, incarnation: randomHex(8), log: cfg.Logger.With("agent", cfg.Name),
		hub: newHub(), ready: make(chan struct{}),
	}
	a.devices, err = device.New(device.Config{
		Dir: filepath.Join(cfg.Dir, "plugins"), Node: cfg.Name, Version: cfg.Version, Incarnation: a.incarnation,
		Reserve: cfg.Reserve, Sysfs: cfg.Sysfs, Plugins: cfg.Plugins, OnChange: a.hub.reportChanged, Logger: a.log,
	})
	if err != nil {
		return nil, err
	}
	if a.volumes, err = volumes(cfg, a.log); err != nil {
		return nil, err
	}
	a.server = a.newServer()
	if len(cfg.Managers) > 0 {
		a.node, err = cluster.NewNode(cluster.NodeConfig{
			Role: cluster.RoleAgent, Name: cfg.Name, Dir: cfg.Dir, Managers: cfg.Managers,
			JoinToken: cfg.JoinToken, CAFingerprint: cfg.CAFingerprint, Streams: a.ServeStream, Logger: a.log,
		})
		if err != nil {
			return nil, err
		}
	}
	if err := a.measure(a.registerer()); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return a, nil
}

// identity reads the id that distinguishes this agent's objects on the host, or generates it on the
// first start.
func identity(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	id := randomHex(6)
	return id, os.WriteFile(path, []byte(id+"\n"), 0o600)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// GRPCServer returns the server for calls of managers. Calls fail with Unavailable until Ready is
// closed.
func (a *Agent) GRPCServer() *grpc.Server { return a.server }

// Ready returns a channel that is closed when Run has recovered all kernels and serves.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Run serves until the context ends. A clean stop ends the running kernels unless KeepSessions is
// set, and removes everything that no remaining kernel needs.
func (a *Agent) Run(ctx context.Context) (err error) {
	if err := a.check(ctx); err != nil {
		return err
	}
	if err := a.open(ctx); err != nil {
		return err
	}
	a.confine()
	// The server continues while kernels end, so that managers receive their final states.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer func() {
		a.stopKernels(ctx)
		stopServing()
		a.server.Stop()
		wg.Wait()
		for _, v := range a.volumes {
			if v.Guard != nil {
				v.Guard.Release()
			}
		}
		err = errors.Join(err, a.close())
	}()
	if err := a.kernels.Recover(ctx); err != nil {
		return fmt.Errorf("find kernels again: %w", err)
	}
	// Plugins start after the live kernels are known. The first report waits for the plugins'
	// devices.
	wg.Go(func() { a.devices.Run(serving) })
	a.devices.AwaitReports(ctx, pluginStart)
	close(a.ready)
	a.log.Info("agent ready", "id", a.id, "kernels", len(a.kernels.List()))
	wg.Go(func() { a.sample(serving) })
	wg.Go(func() { a.kernels.Trim(serving) })
	wg.Go(func() { a.monitor.Run(serving) })
	wg.Go(func() { a.serveLayers(serving) })
	wg.Go(func() { a.cleaner.run(serving) })
	wg.Go(func() { opsserver.NewWatcher(cluster.RoleAgent, a.Checks(), a.registerer(), a.log).Run(serving) })
	if a.disks != nil {
		wg.Go(func() { a.disks.Run(serving) })
	}
	for _, v := range a.volumes {
		if v.Scopes != nil {
			wg.Go(func() { v.Scopes.Run(serving) })
		}
	}
	if a.node == nil {
		<-ctx.Done()
		return nil
	}
	served := make(chan error, 1)
	wg.Go(func() { served <- a.node.Serve(serving, a.server) })
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// check probes the host and returns an error if kernels could not work on it.
func (a *Agent) check(ctx context.Context) error {
	if a.cfg.Runtime != nil {
		return nil
	}
	a.probes = probe.Host(ctx, a.cfg.RuncPath, a.cfg.Dir)
	for _, p := range a.probes {
		if !p.Ok {
			a.log.Warn("host lacks a feature", "probe", p.Name, "detail", p.Detail)
		}
	}
	if p := probe.Failed(a.probes); p != nil {
		return fmt.Errorf("this host cannot run kernels: %s: %s: %w", p.Name, p.Detail, errdefs.ErrFailedPrecondition)
	}
	return nil
}

func (a *Agent) open(ctx context.Context) (err error) {
	a.runtime, a.network = a.cfg.Runtime, a.cfg.Network
	if a.runtime == nil {
		a.runtime, err = containerd.New(ctx, containerd.Config{
			Socket: a.cfg.ContainerdSocket, Agent: a.id, Dir: filepath.Join(a.cfg.Dir, "runtime"),
			Shim: a.cfg.ShimPath, Runner: a.cfg.RunnerPath, Runc: a.cfg.RuncPath,
			Transfers: a.cfg.Images.Transfers, Fetched: a.meter.layers, Logger: a.log,
			Lazy: containerd.Lazy{Command: a.lazyCommand(), Changed: a.hub.reportChanged},
		})
		if err != nil {
			return err
		}
		if err := a.openDisks(ctx); err != nil {
			return errors.Join(err, a.runtime.Close())
		}
	}
	if a.network == nil {
		if a.network, err = a.openNetwork(); err != nil {
			return errors.Join(err, a.runtime.Close())
		}
	}
	a.monitor = condition.New(condition.Config{
		Disks: a.watched(), Limits: a.cfg.Conditions, Runtime: a.runtime.Answers, OnChange: a.hub.conditionsChanged, Logger: a.log,
	})
	a.monitor.Check(ctx)
	a.kernels, err = kernel.New(kernel.Config{
		Blame: a.monitor.Blame, Agent: a.id, Dir: a.cfg.Dir, Runtime: a.runtime, Devices: a.devices, Network: a.network,
		Volumes: a.volumes, Disks: a.disks, Builders: a.newBuilders(), Runner: a.cfg.RunnerPath, CABundle: a.cfg.CABundle, PidsLimit: a.cfg.PidsLimit,
		LogBytes: a.cfg.LogFileBytes, LogFiles: a.cfg.LogFiles,
		EndedKernels: a.cfg.EndedKernels, EndedLogBytes: a.cfg.EndedLogBytes, OnChange: a.hub.kernelChanged, Logger: a.log,
	})
	if err != nil {
		return errors.Join(err, a.close())
	}
	a.pulls = newPulls(a)
	a.cleaner = newCleaner(a)
	if err := a.openLayers(); err != nil {
		return errors.Join(err, a.close())
	}
	a.stats = stats.New(a.kernels, a.devices, a.cfg.Dir, a.log)
	return nil
}

// newBuilders returns what builds images; nil if this agent builds none.
func (a *Agent) newBuilders() kernel.Builders {
	if a.cfg.Builders != nil || a.cfg.BuilderPath == "" {
		return a.cfg.Builders
	}
	a.builders = build.New(build.Config{Program: a.cfg.BuilderPath, Runc: a.cfg.RuncPath, Dir: filepath.Join(a.cfg.Dir, "builds"), Disks: a.disks})
	return a.builders
}

// openDisks selects the mechanism that limits the disk space of kernels.
func (a *Agent) openDisks(ctx context.Context) error {
	disks, p, err := disk.New(ctx, a.cfg.Dir, a.log)
	if err != nil {
		return fmt.Errorf("disks of kernels: %w", err)
	}
	if !p.Ok {
		a.log.Warn("host lacks a feature", "probe", p.Name, "detail", p.Detail)
	}
	a.disks, a.probes = disks, append(a.probes, p)
	return nil
}

// watched returns the disks that kernels fill.
func (a *Agent) watched() []condition.Disk {
	list := []condition.Disk{{Name: "agent's disk", Dir: a.cfg.Dir}}
	if a.cfg.ContainerdSocket != "" { // containerd keeps the layers beside its socket
		list = append(list, condition.Disk{Name: "containers' disk", Dir: filepath.Dir(a.cfg.ContainerdSocket)})
	}
	return list
}

// stopKernels ends all kernels unless KeepSessions is set, then detaches from them.
func (a *Agent) stopKernels(ctx context.Context) {
	if a.cfg.KeepSessions {
		a.kernels.Detach()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	a.kernels.StopAll(ctx, "the agent was stopped")
}

func (a *Agent) close() error {
	err := a.runtime.Close()
	if a.builders != nil {
		err = errors.Join(err, a.builders.Close())
	}
	if n, ok := a.network.(interface{ Close() error }); ok {
		err = errors.Join(err, n.Close())
	}
	removeCgroup("/berth/" + a.id)
	return err
}

// removeCgroup removes our parent cgroup from every hierarchy in which no kernel uses it.
func removeCgroup(path string) {
	deadline := time.Now().Add(2 * time.Second)
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		dirs, _ := filepath.Glob(pattern + path)
		for _, dir := range dirs {
			err := os.Remove(dir)
			// rmdir fails with EBUSY for a moment after the last child was removed.
			for errors.Is(err, syscall.EBUSY) && !hasChildren(dir) && time.Now().Before(deadline) {
				time.Sleep(10 * time.Millisecond)
				err = os.Remove(dir)
			}
			if err == nil {
				_ = os.Remove(filepath.Dir(dir)) // shared by all agents of the host
			}
		}
	}
}

func hasChildren(cgroup string) bool {
	entries, err := os.ReadDir(cgroup)
	return err != nil || slices.ContainsFunc(entries, os.DirEntry.IsDir)
}

// sample collects statistics until the context ends.
func (a *Agent) sample(ctx context.Context) {
	tick := time.NewTicker(a.cfg.StatsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
			a.hub.sampled(a.stats.Collect(bounded))
			cancel()
		}
	}
}
