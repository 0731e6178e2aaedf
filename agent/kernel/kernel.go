package kernel

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/agent/runtime"
)

// Kernel is one kernel with a record on this node.
type Kernel struct {
	ID string
	m  *Manager

	mu        sync.Mutex
	rec       record
	image     runtime.Image     // set by reserve; empty after a restart of the agent
	container runtime.Container // set after its creation
	replaces  *Kernel           // an ended launch, until this one has its record
	mounting  sync.Mutex        // serializes changes of mounts

	committing sync.Mutex // held during a commit and a build

	begun   chan struct{} // closed once the record is written or the launch was refused
	refused bool          // the launch was refused, and there is no record

	stopping    chan struct{} // closed by the first stop request
	once        sync.Once
	stopChanged chan struct{} // signals a changed stop request
	done        chan struct{} // closed when the kernel has ended
}

func (m *Manager) newKernel(rec record) *Kernel {
	rec.state.Allocations = rec.request.Allocations
	return &Kernel{
		ID: rec.request.KernelId, m: m, rec: rec,
		begun: make(chan struct{}), stopping: make(chan struct{}), stopChanged: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// State returns a copy of the current state.
func (k *Kernel) State() *agentpb.KernelState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return proto.Clone(k.rec.state).(*agentpb.KernelState)
}

// Phase returns the current phase of the kernel.
func (k *Kernel) Phase() agentpb.KernelState_Phase {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rec.state.Phase
}

// Done returns a channel that is closed when the kernel has ended and all its resources are free.
func (k *Kernel) Done() <-chan struct{} { return k.done }

func (k *Kernel) ended() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// LogDir returns the directory of the kernel's log.
func (k *Kernel) LogDir() string { return filepath.Join(k.m.dir(k.ID), "log") }

// containerID returns an id that is unique for every launch, so that remains of an earlier launch
// are never mistaken for this one.
func containerID(r *agentpb.CreateKernelRequest) string {
	return fmt.Sprintf("%s-%d", r.KernelId, r.LaunchEpoch)
}

// AllocationID returns the id of the kernel's device allocations.
func (k *Kernel) AllocationID() string { return containerID(k.rec.request) }

// Allocations returns the kernel's allocations, which never change.
func (k *Kernel) Allocations() []*agentpb.Allocation { return k.rec.request.Allocations }

// CgroupPath returns the path of the container's cgroup below the cgroup root.
func (k *Kernel) CgroupPath() string { return "/berth/" + k.m.cfg.Agent + "/" + k.ID }

// Running returns the container of a running kernel, and FailedPrecondition otherwise.
func (k *Kernel) Running() (runtime.Container, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	phase := k.rec.state.Phase
	if k.container == nil || (phase != agentpb.KernelState_RUNNING && phase != agentpb.KernelState_STOPPING) {
		return nil, fmt.Errorf("kernel %s is not running but %s: %w", k.ID, phase, errdefs.ErrFailedPrecondition)
	}
	return k.container, nil
}

func (k *Kernel) attachment() network.Attachment {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rec.network
}

// Dial connects to a loopback port inside the kernel.
func (k *Kernel) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	if _, err := k.Running(); err != nil {
		return nil, err
	}
	return k.m.cfg.Network.Dial(ctx, k.attachment(), port)
}

// Traffic returns the bytes that the kernel has received and sent.
func (k *Kernel) Traffic() (received, sent uint64, err error) {
	return k.m.cfg.Network.Traffic(k.attachment())
}

// step runs f and records its duration and result.
func (k *Kernel) step(name string, f func() error) error {
	s := &agentpb.Step{Name: name, StartedUnixMs: time.Now().UnixMilli()}
	err := f()
	s.EndedUnixMs, s.Ok = time.Now().UnixMilli(), err == nil
	if err != nil {
		s.Message = err.Error()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rec.state.Steps = append(k.rec.state.Steps, s)
	return err
}
