// Package volume is the data side of the volumes of a storage proxy: the check that the right
// file system is mounted, folders and their files, and the plugin of the storage product. All
// access of the proxy to users' paths goes through its Folder.
package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/pluginhost"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/scopemount"
	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// Config describes one volume.
type Config struct {
	Name      string // as users see it
	Backend   string // path of the plugin's program
	SHA256    string // of that program, hex; "" = not checked
	MountPath string // absolute
	// OptionsJSON is passed to the plugin unchanged.
	OptionsJSON string
	// Create creates the directory if it is absent, and accepts one that is not a mount point:
	// for a single machine with its data on its own disk.
	Create bool
	// ScopeMount is the rule for mounting scopes that are file systems of their own; nil: the
	// proxy mounts no scopes.
	ScopeMount *scopemount.Rule
}

var volumeName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func (c Config) check() error {
	switch {
	case !volumeName.MatchString(c.Name):
		return invalid("volume name %q must be at most 63 characters of a-z, 0-9, '.', '_' and '-'", c.Name)
	case c.Backend == "":
		return invalid("volume %s: backend is missing: the plugin's program", c.Name)
	case !filepath.IsAbs(c.MountPath):
		return invalid("volume %s: mount path %q is not absolute", c.Name, c.MountPath)
	case c.OptionsJSON != "" && !json.Valid([]byte(c.OptionsJSON)):
		return invalid("volume %s: options are not JSON", c.Name)
	}
	if c.ScopeMount != nil {
		if err := c.ScopeMount.Check(); err != nil {
			return fmt.Errorf("volume %s: scope_mount: %w", c.Name, err)
		}
	}
	return nil
}

// inFlight limits the concurrent calls to a plugin for one volume.
const inFlight = 16

// Volume is one volume. Folder calls need only the mounted file system; scope
// calls need the plugin.
type Volume struct {
	cfg      Config
	identity identity
	mounts   *scopemount.Mounts // nil if the proxy does not mount scopes
	host     *pluginhost.Host[*plugin.Client]
	log      *slog.Logger
	slots    chan struct{}

	opening  sync.Mutex // locked while the volume is opened in a process
	promises promises
	answers  answers // used only by look, as is swept
	swept    bool    // the scopes of an earlier process were closed

	mu     sync.Mutex     // not locked during calls of the plugin, which may hang
	opened *plugin.Client // the process in which the volume is open
	caps   *volumepb.OpenVolumeResponse
	state  State
	limits map[string]*volumepb.Scope // last answer by scope, for use while the plugin does not answer
	on     uint64                     // id of the mount at the time of opening
	shut   map[string]bool            // scopes whose directories are closed to everyone but root
}

// Name returns the volume's name.
func (v *Volume) Name() string { return v.cfg.Name }

// call runs f with the plugin after it has made sure that the volume is mounted and open, and
// converts gRPC codes to error classes.
func (v *Volume) call(ctx context.Context, f func(*plugin.Client) error) error {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := v.open(ctx)
	if err != nil {
		return err
	}
	if err := f(c); err != nil {
		return fmt.Errorf("volume %s: %w", v.cfg.Name, errgrpc.ToNative(err))
	}
	return nil
}

// open makes sure the volume is mounted and open in the running process.
func (v *Volume) open(ctx context.Context) (*plugin.Client, error) {
	root, err := v.identity.root()
	if err != nil {
		v.mu.Lock()
		v.opened = nil // another mount must be opened again
		v.mu.Unlock()
		return nil, err
	}
	on, err := confine.MountID(root)
	root.Close()
	if err != nil {
		return nil, err
	}
	c, err := v.host.Get(ctx)
	if err != nil {
		return nil, err
	}
	v.opening.Lock()
	defer v.opening.Unlock()
	v.mu.Lock()
	opened, same := v.opened, v.on == on
	v.mu.Unlock()
	if opened == c && same {
		return c, nil
	}
	caps, err := c.OpenVolume(ctx, &volumepb.OpenVolumeRequest{
		Volume: v.cfg.Name, MountPath: v.cfg.MountPath, OptionsJson: v.cfg.OptionsJSON,
	})
	if err != nil {
		return nil, fmt.Errorf("open volume %s: %w", v.cfg.Name, errgrpc.ToNative(err))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.opened, v.caps, v.on = c, caps, on
	return c, nil
}

// can reports whether the product has a capability.
func (v *Volume) can(want volumepb.Capability) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return has(v.caps, want)
}

func has(r *volumepb.OpenVolumeResponse, want volumepb.Capability) bool {
	for _, c := range r.GetCapabilities() {
		if c == want {
			return true
		}
	}
	return false
}

// Room returns an error if the file system has too little free space right now.
func (v *Volume) Room(size int64) error {
	root, err := v.identity.root()
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &st); err != nil {
		return classify("statfs", v.cfg.Name, err)
	}
	if st.Blocks > 0 && size/st.Bsize >= int64(st.Bavail) && size > 0 {
		return fmt.Errorf("volume %s: %d bytes do not fit: %w", v.cfg.Name, size, problem.ErrNoSpace)
	}
	return nil
}

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

// check updates the state and reports whether it changed. It must not run concurrently.
func (v *Volume) check(ctx context.Context) bool {
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
		a := &v.answers
		s.Health, s.Message, s.Details = a.health.State, a.health.Reason, a.health.Metadata
		v.reportMounts(s, caps)
		s.Capacity, s.Performance = a.capacity, a.performance
		return nil
	})
}

// refresh calls the plugin for values that are too old.
func (v *Volume) refresh(ctx context.Context, c *plugin.Client, caps *volumepb.OpenVolumeResponse) error {
	if v.answers.from != c {
		v.answers = answers{from: c}
	}
	a, ref, now := &v.answers, &volumepb.VolumeRef{Volume: v.cfg.Name}, time.Now()
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
