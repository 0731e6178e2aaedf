// Package volume is the data side of the volumes a storage proxy serves:
// which file system must be mounted where, folders and the files in them, and
// the plugin that knows the product below. All work on users' paths in the
// proxy goes through its Folder.
package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"sync"

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
	Name      string // as people see it
	Backend   string // path of the plugin's program
	SHA256    string // of that program, hex; "" = not checked
	MountPath string // absolute
	// OptionsJSON goes to the plugin as it is.
	OptionsJSON string
	// Create makes the directory when it is absent and takes it though it is
	// not a mount point: for a single machine with its data on its own disk.
	Create bool
	// ScopeMount is how the scopes are mounted where each is a file system of its own;
	// nil = nothing is mounted for them here.
	ScopeMount *scopemount.Rule
}

var volumeName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func (c Config) check() error {
	switch {
	case !volumeName.MatchString(c.Name):
		return invalid("volume name %q: wants a-z, 0-9, '.', '_', '-', at most 63", c.Name)
	case c.Backend == "":
		return invalid("volume %s: backend: the plugin's program is missing", c.Name)
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

// inFlight bounds the calls under way to a plugin for one volume.
const inFlight = 16

// Volume is one volume. Folder calls need only the mounted file system; scope
// calls need the plugin.
type Volume struct {
	cfg      Config
	identity identity
	mounts   *scopemount.Mounts // nil where scopes are no mounts of ours
	host     *pluginhost.Host[*plugin.Client]
	log      *slog.Logger
	slots    chan struct{}

	opening  sync.Mutex // held while a process opens the volume
	promises promises
	told     answers // of look alone, as swept
	swept    bool    // scopes of an earlier process were closed

	mu     sync.Mutex     // never held across a call to the plugin: it may hang
	opened *plugin.Client // the process in which the volume is open
	caps   *volumepb.OpenVolumeResponse
	state  State
	limits map[string]*volumepb.Scope // last answer by scope, for when the plugin is away
	on     uint64                     // the mount on which the volume was opened
	shut   map[string]bool            // scopes whose directories were closed to everyone but root
}

// Name is the volume's name.
func (v *Volume) Name() string { return v.cfg.Name }

// call runs f with the plugin, with the volume mounted and open in it, and
// turns gRPC codes into error classes.
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
		v.opened = nil // what is mounted next is opened again
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

// Room refuses what the file system has no space for right now.
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
