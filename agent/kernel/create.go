package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/resource"
)

// supersedeWait limits how long a new launch waits for the end of an earlier one.
const supersedeWait = 20 * time.Second

// Create starts the creation of a kernel and returns without waiting for it. If the same launch was
// requested before, it returns its present state.
func (m *Manager) Create(ctx context.Context, r *agentpb.CreateKernelRequest) (*agentpb.KernelState, error) {
	if err := m.Fence(r.Epoch); err != nil {
		return nil, err
	}
	if err := validate(r); err != nil {
		return nil, err
	}
	for {
		k, old, err := m.register(r)
		switch {
		case err != nil:
			return nil, err
		case k != nil:
			return m.begin(ctx, k)
		case old.rec.request.LaunchEpoch == r.LaunchEpoch:
			select {
			case <-old.begun:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if !old.refused {
				return old.State(), nil
			}
		default:
			if err := old.supersede(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// register adds a new kernel to the list, or returns the existing one with the same id.
func (m *Manager) register(r *agentpb.CreateKernelRequest) (k, old *Kernel, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil, nil, fmt.Errorf("agent is stopping: %w", errdefs.ErrUnavailable)
	}
	old = m.kernels[r.KernelId]
	if old != nil {
		present := old.rec.request.LaunchEpoch
		if r.LaunchEpoch < present {
			return nil, nil, fmt.Errorf("kernel %s: launch %d was replaced by launch %d: %w", r.KernelId, r.LaunchEpoch, present, errdefs.ErrFailedPrecondition)
		}
		if r.LaunchEpoch == present || !old.ended() {
			return nil, old, nil
		}
	}
	k = m.newKernel(record{request: r, state: &agentpb.KernelState{
		KernelId: r.KernelId, SessionId: r.SessionId, LaunchEpoch: r.LaunchEpoch,
		Phase: agentpb.KernelState_CREATING, ContainerId: containerID(r),
		SessionName: r.SessionName, ProjectId: r.ProjectId, UserId: r.UserId,
	}})
	k.replaces = old
	m.kernels[r.KernelId] = k
	return k, nil, nil
}

// supersede ends an earlier launch of the kernel.
func (k *Kernel) supersede(ctx context.Context) error {
	k.requestStop(stop{Reason: "superseded by a later launch"})
	select {
	case <-k.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(supersedeWait):
		return fmt.Errorf("kernel %s: an earlier launch has not ended: %w", k.ID, errdefs.ErrUnavailable)
	}
}

// begin allocates the kernel's resources, writes its record and starts its life cycle. On an error
// it undoes all of this.
func (m *Manager) begin(ctx context.Context, k *Kernel) (*agentpb.KernelState, error) {
	defer close(k.begun)
	if err := m.reserve(ctx, k); err != nil {
		m.cfg.Devices.Release(k.AllocationID())
		err = errors.Join(err, m.cfg.Network.Remove(k.rec.network))
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.kernels, k.ID)
		if k.replaces != nil {
			m.kernels[k.ID] = k.replaces
		} else {
			_ = os.RemoveAll(m.dir(k.ID))
		}
		k.refused = true
		close(k.done)
		return nil, err
	}
	k.replaces = nil
	state := k.State()
	m.cfg.OnChange(k.State())
	m.lives.Go(func() { k.live(m.ctx, nil) })
	return state, nil
}

func (m *Manager) reserve(ctx context.Context, k *Kernel) error {
	r := k.rec.request
	image, err := m.cfg.Runtime.Image(ctx, r.Image)
	if err != nil {
		return err
	}
	k.image = image
	folders, err := m.cfg.Volumes.Open(ctx, folders(r))
	if err != nil {
		return err
	}
	if err := folders.Close(); err != nil {
		return err
	}
	if err := m.cfg.Devices.Allocate(k.AllocationID(), r.Allocations); err != nil {
		return err
	}
	if k.rec.network, err = m.attach(r); err != nil {
		return err
	}
	if k.replaces != nil {
		if err := os.RemoveAll(m.dir(k.ID)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(m.dir(k.ID), 0o700); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.save(); err != nil {
		return fmt.Errorf("write record of kernel %s: %w", k.ID, err)
	}
	return nil
}

func folders(r *agentpb.CreateKernelRequest) []mount.Folder {
	out := make([]mount.Folder, 0, len(r.Mounts))
	for _, m := range r.Mounts {
		out = append(out, mount.Folder{Volume: m.Volume, Path: m.Path, Subpath: m.Subpath, Target: m.Target, ReadOnly: m.ReadOnly, Own: m.Own})
	}
	return out
}

var (
	idForm       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$`)
	hostnameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
)

// validate returns InvalidArgument for requests that no node could fulfill.
func validate(r *agentpb.CreateKernelRequest) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
	}
	switch {
	case !idForm.MatchString(r.KernelId):
		return bad("kernel_id %.80q is malformed", r.KernelId)
	case !idForm.MatchString(r.SessionId):
		return bad("session_id %.80q is malformed", r.SessionId)
	case r.LaunchEpoch < 0:
		return bad("launch_epoch %d is negative", r.LaunchEpoch)
	case r.Hostname != "" && !hostnameForm.MatchString(r.Hostname):
		return bad("hostname %.80q is malformed", r.Hostname)
	case r.Image == "":
		return bad("image is empty")
	case r.ShmBytes < 0:
		return bad("shm_bytes %d is negative", r.ShmBytes)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Environment)) {
		if !naming.IsVariable(name) || strings.ContainsRune(r.Environment[name], 0) {
			return bad("environment variable %.80q is malformed", name)
		}
	}
	for i, arg := range r.Command {
		if strings.ContainsRune(arg, 0) || (i == 0 && arg == "") {
			return bad("command[%d] is empty or has a zero byte", i)
		}
	}
	// A kernel without limits could starve the node.
	for _, slot := range []string{resource.CPU, resource.Mem} {
		if !slices.ContainsFunc(r.Allocations, func(a *agentpb.Allocation) bool { return a.Slot == slot }) {
			return bad("allocations have no %s", slot)
		}
	}
	if _, err := wide(r); err != nil {
		return err
	}
	if err := checkCluster(r); err != nil {
		return err
	}
	return mount.Check(folders(r))
}
