// Package kernel runs the life cycles of the kernels of one node. The record of a kernel on disk is
// written before each action, so that an agent that was killed at any moment can determine which
// kernels run, have ended, or were created in part. All resources of a kernel are freed before it
// is reported as exited. Its exit code and log stay until the manager has stored the exit code.
package kernel

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/disk"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/wholefile"
)

// Network has the methods of network.Manager that kernels need.
type Network interface {
	Reserve(key, session string) (network.Attachment, error)
	Join(network.Attachment) (network.Attachment, error)
	Adopt(network.Attachment) error
	Create(network.Attachment) (path string, err error)
	Path(network.Attachment) string
	Connect(context.Context, network.Attachment) error
	Remove(network.Attachment) error
	Sweep() error
	Dial(ctx context.Context, a network.Attachment, port uint16) (net.Conn, error)
	Traffic(network.Attachment) (received, sent uint64, err error)
}

// Config configures a Manager.
type Config struct {
	Agent   string // id of the agent: label of containers, part of cgroup paths
	Dir     string
	Runtime runtime.Runtime
	Devices *device.Manager
	Network Network
	Volumes mount.Volumes
	Disks   *disk.Disks // nil: the disk space of kernels is not limited
	// Builders build images; nil: this agent builds none.
	Builders Builders
	// Blame reports whether a start failed because of a condition of the machine, and which.
	Blame     func(context.Context, error) (why string, yes bool)
	Runner    string // path on the host
	CABundle  string // path on the host of what containers trust; "" = what their images trust
	PidsLimit int64  // of each kernel; 0 = DefaultPids
	LogBytes  int64  // size of one log file; 0 = default
	LogFiles  int    // number of log files; 0 = default
	// EndedKernels and EndedLogBytes limit what is retained of ended kernels; 0 =
	// DefaultEndedKernels and DefaultEndedLogBytes.
	EndedKernels  int
	EndedLogBytes int64
	// OnChange is called after every change of a kernel's state. The calls for one kernel are in
	// order.
	OnChange func(*agentpb.KernelState)
	Logger   *slog.Logger
}

// DefaultPids is enough for normal workloads and too low to harm the host.
const DefaultPids = 4096

// Manager manages the node's kernels.
type Manager struct {
	cfg  Config
	keys *seal.Ring // keys of this node, which encrypt secrets in records

	ctx    context.Context // parent of all life cycles
	cancel context.CancelFunc
	lives  sync.WaitGroup

	mu      sync.Mutex
	kernels map[string]*Kernel
	epoch   int64 // highest epoch of a leader so far

	naming  sync.Mutex    // serializes shareNames
	commits chan struct{} // one place for each commit that runs
}

// New opens the records in the directory. Recover must be called next.
func New(cfg Config) (*Manager, error) {
	if cfg.PidsLimit == 0 {
		cfg.PidsLimit = DefaultPids
	}
	cfg.EndedKernels = cmp.Or(cfg.EndedKernels, DefaultEndedKernels)
	cfg.EndedLogBytes = cmp.Or(cfg.EndedLogBytes, DefaultEndedLogBytes)
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "kernels"), 0o700); err != nil {
		return nil, err
	}
	if cfg.Blame == nil {
		cfg.Blame = func(context.Context, error) (string, bool) { return "", false }
	}
	keys, err := seal.Load(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("keys of kernels' records: %w", err)
	}
	m := &Manager{cfg: cfg, keys: keys, kernels: map[string]*Kernel{}, commits: make(chan struct{}, atOnce)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	text, err := os.ReadFile(m.epochPath())
	if err == nil {
		m.epoch, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read leader's epoch: %w", err)
	}
	return m, nil
}

func (m *Manager) epochPath() string { return filepath.Join(m.cfg.Dir, "epoch") }

func (m *Manager) dir(id string) string { return filepath.Join(m.cfg.Dir, "kernels", id) }

// Fence returns FailedPrecondition for a leader that was replaced, also after a restart of the
// agent: the highest epoch is written to disk before any of its calls is executed.
func (m *Manager) Fence(epoch int64) error {
	if epoch <= 0 {
		return fmt.Errorf("epoch %d is not that of a leader: %w", epoch, errdefs.ErrInvalidArgument)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch < m.epoch {
		return fmt.Errorf("epoch %d is over; the leader has epoch %d: %w", epoch, m.epoch, errdefs.ErrFailedPrecondition)
	}
	if epoch == m.epoch {
		return nil
	}
	if err := wholefile.Write(m.epochPath(), []byte(strconv.FormatInt(epoch, 10))); err != nil {
		return fmt.Errorf("note leader's epoch: %w", err)
	}
	m.epoch = epoch
	return nil
}

// Get returns a kernel that has a record, and NotFound otherwise.
func (m *Manager) Get(id string) (*Kernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kernels[id]
	if !ok {
		return nil, fmt.Errorf("kernel %.80q is not on this node: %w", id, errdefs.ErrNotFound)
	}
	return k, nil
}

// List returns all kernels that have a record, sorted by id.
func (m *Manager) List() []*Kernel {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*Kernel, 0, len(m.kernels))
	for _, k := range m.kernels {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *Kernel) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Forget deletes the record and the log of an ended kernel.
func (m *Manager) Forget(epoch int64, id string) error {
	if err := m.Fence(epoch); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kernels[id]
	if !ok {
		return nil
	}
	if !k.ended() {
		return fmt.Errorf("kernel %s has not ended: %w", id, errdefs.ErrFailedPrecondition)
	}
	return m.remove(k)
}

// remove deletes an ended kernel. The caller must hold m.mu.
func (m *Manager) remove(k *Kernel) error {
	if m.kernels[k.ID] != k {
		return nil // a later launch has replaced it
	}
	if err := os.RemoveAll(m.dir(k.ID)); err != nil {
		return fmt.Errorf("forget kernel %s: %w", k.ID, err)
	}
	delete(m.kernels, k.ID)
	return nil
}

// Detach stops the management of kernels and leaves them running.
func (m *Manager) Detach() {
	m.cancel()
	m.lives.Wait()
}

// StopAll ends every kernel. It detaches from kernels that have not ended when the context ends.
func (m *Manager) StopAll(ctx context.Context, why string) {
	for _, k := range m.List() {
		if !k.ended() {
			k.requestStop(stop{Reason: why, Grace: defaultGrace})
		}
	}
	for _, k := range m.List() {
		select {
		case <-k.done:
		case <-ctx.Done():
		}
	}
	m.Detach()
}
