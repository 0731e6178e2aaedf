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

// Kernel is one kernel that has a record on this node.
type Kernel struct {
	ID string
	m  *Manager

	mu        sync.Mutex
	rec       record
	container runtime.Container // once it is made
	replaces  *Kernel           // an ended launch, until this one has its record
	mounting  sync.Mutex        // held while mounts are changed

	begun   chan struct{} // closed when the record is there, or
	refused bool          // when there will be none

	stopping chan struct{} // closed by the first wish to end
	once     sync.Once
	nudge    chan struct{} // the wish has changed
	done     chan struct{} // closed when the kernel has ended
}

func (m *Manager) newKernel(rec record) *Kernel {
	rec.state.Allocations = rec.request.Allocations
	return &Kernel{
		ID: rec.request.KernelId, m: m, rec: rec,
		begun: make(chan struct{}), stopping: make(chan struct{}), nudge: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// State returns a copy of the present state.
func (k *Kernel) State() *agentpb.KernelState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return proto.Clone(k.rec.state).(*agentpb.KernelState)
}

// Phase returns where in its life the kernel is.
func (k *Kernel) Phase() agentpb.KernelState_Phase {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rec.state.Phase
}

// Done is closed when the kernel has ended and holds nothing.
func (k *Kernel) Done() <-chan struct{} { return k.done }

func (k *Kernel) ended() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// LogDir is where the kernel's output is kept.
func (k *Kernel) LogDir() string { return filepath.Join(k.m.dir(k.ID), "log") }

// containerID is new for every launch, so that a late remainder of an earlier
// one is never taken for this.
func containerID(r *agentpb.CreateKernelRequest) string {
	return fmt.Sprintf("%s-%d", r.KernelId, r.LaunchEpoch)
}

// AllocationID names what the kernel holds of devices.
func (k *Kernel) AllocationID() string { return containerID(k.rec.request) }

// Allocations of the kernel. They never change.
func (k *Kernel) Allocations() []*agentpb.Allocation { return k.rec.request.Allocations }

// CgroupPath of the kernel's container, below the cgroup root.
func (k *Kernel) CgroupPath() string { return "/berth/" + k.m.cfg.Agent + "/" + k.ID }

// Running returns the container of a running kernel.
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

// Traffic returns bytes received and sent by the kernel.
func (k *Kernel) Traffic() (received, sent uint64, err error) {
	return k.m.cfg.Network.Traffic(k.attachment())
}

// step runs f and notes when and how it went.
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
