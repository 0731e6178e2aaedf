// Package agent runs kernels on one node. It keeps the node's devices, the
// plugins that know them and the kernels on them, and serves managers, whom it
// dials itself. Containers and records outlive it: an agent that was killed
// continues where it stood. Only cmd/berthd and the tests of whole clusters
// import it.
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
	"github.com/berthhq/berth/agent/condition"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/disk"
	"github.com/berthhq/berth/agent/kernel"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/probe"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/stats"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/netlist"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/scopemount"
)

// PluginConfig names an accelerator plugin of this node.
type PluginConfig = device.PluginConfig

// Config of an agent. Paths are absolute.
type Config struct {
	Name    string // of the node, unique in the cluster
	Dir     string // everything the agent keeps
	Version string // of the program; managers and plugins see it

	// Where managers are and what proves that we may join. Without managers
	// the agent only serves GRPCServer to anyone who its owner connects.
	Managers      []string
	JoinToken     string
	CAFingerprint string

	Volumes map[string]string // name to path on this host
	// ScopeMounts are how the scopes of a volume are mounted, where each is a file
	// system of its own; without one, nothing is mounted for them.
	ScopeMounts   map[string]scopemount.Rule
	Plugins       []PluginConfig
	Reserve       resource.Slots // kept from kernels
	Sysfs         string         // what the machine is made of is read there; /sys when empty
	ResourceGroup string         // wish for the first registration
	Address       string         // of the node, for people

	ContainerdSocket string
	ShimPath         string
	RuncPath         string
	RunnerPath       string
	RuntimeClasses   map[string]string // further classes to OCI runtime binaries
	Subnet           netip.Prefix      // of the kernels; zero = network.DefaultSubnet
	// Overlay is where other agents send what is for kernels of sessions that lie
	// on several agents: an address, a port or both, the others being the address
	// on the way to the managers and network.DefaultPort. OverlayOff: nowhere.
	Overlay string
	// AllowNetworks are private networks that containers reach, DenyNetworks other
	// ones that they do not; see network.Config.
	AllowNetworks []netlist.Entry
	DenyNetworks  []netip.Prefix
	PidsLimit     int64 // of a kernel that does not ask; 0 = kernel.DefaultPids
	LogFileBytes  int64 // size at which a kernel's log begins a new file
	LogFiles      int   // how many of them are kept
	// What is kept at most of ended kernels; 0 = kernel.DefaultEndedKernels and
	// kernel.DefaultEndedLogBytes.
	EndedKernels  int
	EndedLogBytes int64

	// Conditions are the floors of the machine below which it takes nothing new.
	Conditions condition.Limits

	StatsInterval time.Duration        // 0 = 5 s
	KeepSessions  bool                 // what a clean stop does with running kernels
	Registry      *prometheus.Registry // nil: no metrics
	Logger        *slog.Logger

	// Runtime and Network replace the real ones in tests that need no
	// containers.
	Runtime runtime.Runtime
	Network kernel.Network
}

// OverlayOff keeps sessions from having kernels on this agent and on others.
const OverlayOff = "off"

const (
	defaultStats   = 5 * time.Second
	heartbeatEvery = 3 * time.Second
	pluginStart    = 5 * time.Second
	// stopTimeout is the grace of a kernel, its SIGKILL, and its clean-up.
	stopTimeout = 30 * time.Second
)

// Agent is one agent. Make it with New, then Run it once.
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
	volumes     mount.Volumes
	sampling    chan time.Duration // a wish for another interval
	ready       chan struct{}

	// Set before ready is closed.
	runtime runtime.Runtime
	network kernel.Network
	monitor *condition.Monitor
	disks   *disk.Disks // nil without containers
	devices *device.Manager
	kernels *kernel.Manager
	stats   *stats.Collector
}

// New prepares an agent. Nothing on the host changes but its directory.
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
	if err := confine.Directory(cfg.Dir, 0o700); err != nil { // what containers write lies below
		return nil, err
	}
	id, err := identity(filepath.Join(cfg.Dir, "id"))
	if err != nil {
		return nil, err
	}
	a := &Agent{
		cfg: cfg, id: id, incarnation: randomHex(8), log: cfg.Logger.With("agent", cfg.Name),
		hub: newHub(), ready: make(chan struct{}), sampling: make(chan time.Duration, 1),
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
			JoinToken: cfg.JoinToken, CAFingerprint: cfg.CAFingerprint, Logger: a.log,
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

// identity is chosen once for a directory and names things on the host.
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

// GRPCServer is what managers call. It answers Unavailable until Ready.
func (a *Agent) GRPCServer() *grpc.Server { return a.server }

// Ready is closed when Run has found every kernel again and serves.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Run serves until the context ends. A clean stop keeps or ends the running
// kernels, as configured; whatever is not needed by kept ones is removed.
func (a *Agent) Run(ctx context.Context) (err error) {
	if err := a.check(ctx); err != nil {
		return err
	}
	if err := a.open(ctx); err != nil {
		return err
	}
	a.confine()
	// Serving continues while kernels end, so that managers hear of it.
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
	// Plugins start when it is known what is alive, and the first report
	// waits for what they have to say.
	wg.Go(func() { a.devices.Run(serving) })
	a.devices.Settle(ctx, pluginStart)
	close(a.ready)
	a.log.Info("agent ready", "id", a.id, "kernels", len(a.kernels.List()))
	wg.Go(func() { a.sample(serving) })
	wg.Go(func() { a.kernels.Trim(serving) })
	wg.Go(func() { a.monitor.Run(serving) })
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

// check probes the host and refuses to begin what cannot work.
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

func (a *Agent) classes() map[string]string {
	classes := map[string]string{"runc": a.cfg.RuncPath}
	for name, binary := range a.cfg.RuntimeClasses {
		classes[name] = binary
	}
	return classes
}

func (a *Agent) open(ctx context.Context) (err error) {
	a.runtime, a.network = a.cfg.Runtime, a.cfg.Network
	if a.runtime == nil {
		a.runtime, err = containerd.New(ctx, containerd.Config{
			Socket: a.cfg.ContainerdSocket, Agent: a.id, Dir: filepath.Join(a.cfg.Dir, "runtime"),
			Shim: a.cfg.ShimPath, Runner: a.cfg.RunnerPath, Class: a.classes(), Logger: a.log,
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
		Volumes: a.volumes, Disks: a.disks, Runner: a.cfg.RunnerPath, PidsLimit: a.cfg.PidsLimit,
		LogBytes: a.cfg.LogFileBytes, LogFiles: a.cfg.LogFiles,
		EndedKernels: a.cfg.EndedKernels, EndedLogBytes: a.cfg.EndedLogBytes, OnChange: a.hub.kernelChanged, Logger: a.log,
	})
	if err != nil {
		return errors.Join(err, a.close())
	}
	a.pulls = newPulls(a.runtime, a.hub, a.meter)
	a.stats = stats.New(a.kernels, a.devices, a.cfg.Dir, a.log)
	return nil
}

// openDisks finds out how limits of what kernels write can be kept.
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

// watched are the disks that fill with what kernels write.
func (a *Agent) watched() []condition.Disk {
	list := []condition.Disk{{Name: "agent's disk", Dir: a.cfg.Dir}}
	if a.cfg.ContainerdSocket != "" { // the layers lie beside it
		list = append(list, condition.Disk{Name: "containers' disk", Dir: filepath.Dir(a.cfg.ContainerdSocket)})
	}
	return list
}

// stopKernels detaches from the kernels after ending them, unless they are to
// be kept.
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
	if n, ok := a.network.(interface{ Close() error }); ok {
		err = errors.Join(err, n.Close())
	}
	removeCgroup("/berth/" + a.id)
	return err
}

// removeCgroup removes our parent directory in every hierarchy where no
// kernel's is in it any more.
func removeCgroup(path string) {
	deadline := time.Now().Add(2 * time.Second)
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		dirs, _ := filepath.Glob(pattern + path)
		for _, dir := range dirs {
			err := os.Remove(dir)
			// The kernel calls it busy for a moment after its last child went.
			for errors.Is(err, syscall.EBUSY) && !hasChildren(dir) && time.Now().Before(deadline) {
				time.Sleep(10 * time.Millisecond)
				err = os.Remove(dir)
			}
			if err == nil {
				_ = os.Remove(filepath.Dir(dir)) // shared by the host's agents
			}
		}
	}
}

func hasChildren(cgroup string) bool {
	entries, err := os.ReadDir(cgroup)
	return err != nil || slices.ContainsFunc(entries, os.DirEntry.IsDir)
}

// sample takes stats until the context ends.
func (a *Agent) sample(ctx context.Context) {
	tick := time.NewTicker(a.cfg.StatsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-a.sampling:
			tick.Reset(d)
		case <-tick.C:
			bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
			a.hub.sampled(a.stats.Collect(bounded))
			cancel()
		}
	}
}
