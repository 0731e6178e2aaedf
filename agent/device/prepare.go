package device

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Request is an allocation to prepare.
type Request struct {
	ID          string // identifies the allocation, the same for every attempt
	Kernel      string
	Session     string
	TrustDomain string
	Allocations []*agentpb.Allocation
}

// Prepared is the result of Prepare: edits for the container, and the states that plugins need for
// later calls, by plugin key.
type Prepared struct {
	ID     string
	Edits  map[string]*acceleratorpb.ContainerEdits
	States map[string][]byte
	Lines  []string // KEY=value lines that describe the devices of the container
}

// pluginWait is how long Prepare waits for a plugin that is being restarted.
const pluginWait = 10 * time.Second

// Prepare calls each plugin to prepare its devices. It can be repeated.
func (m *Manager) Prepare(ctx context.Context, r Request) (Prepared, error) {
	out := Prepared{ID: r.ID, Edits: map[string]*acceleratorpb.ContainerEdits{}, States: map[string][]byte{}}
	parts, values := m.split(r.Allocations), lines{}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		resp, err := m.prepare(ctx, key, r, parts[key])
		if err != nil {
			return Prepared{}, fmt.Errorf("prepare devices of %s: %w", key, err)
		}
		out.Edits[key], out.States[key] = resp.GetEdits(), resp.GetState()
		if err := values.add(key, resp); err != nil {
			return Prepared{}, fmt.Errorf("prepare devices of %s: %w", key, err)
		}
	}
	out.Lines = values.list()
	return out, nil
}

// PluginsOf returns the keys of the plugins whose devices are allocated.
func PluginsOf(allocations []*agentpb.Allocation) []string {
	var keys []string
	for _, a := range allocations {
		if key, _ := pluginOf(a.DeviceId); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// split groups a request by plugin and converts the device ids to the plugin's own.
func (m *Manager) split(allocations []*agentpb.Allocation) map[string][]*acceleratorpb.Allocation {
	parts := map[string][]*acceleratorpb.Allocation{}
	for _, a := range allocations {
		if key, local := pluginOf(a.DeviceId); key != "" {
			parts[key] = append(parts[key], &acceleratorpb.Allocation{Slot: a.Slot, DeviceId: local, Amount: a.Amount})
		}
	}
	return parts
}

// Accelerated reports whether any of the allocations is of a plugin's device.
func Accelerated(allocations []*agentpb.Allocation) bool {
	return slices.ContainsFunc(allocations, func(a *agentpb.Allocation) bool {
		key, _ := pluginOf(a.DeviceId)
		return key != ""
	})
}

func (m *Manager) prepare(ctx context.Context, key string, r Request, part []*acceleratorpb.Allocation) (*acceleratorpb.PrepareResponse, error) {
	work := m.work(key, r.ID)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	req := &acceleratorpb.PrepareRequest{
		AllocationId: r.ID, KernelId: r.Kernel, SessionId: r.Session, Allocations: part,
		WorkDir: work, TrustDomain: r.TrustDomain,
	}
	resp, err := retry(ctx, m, key, func(c *accelerator.Client) (*acceleratorpb.PrepareResponse, error) {
		return m.through(ctx, c, key, req)
	})
	if err != nil {
		return nil, err
	}
	if err := accelerator.ValidatePrepared(resp); err != nil {
		return nil, fmt.Errorf("its answer is malformed: %w: %w", err, errdefs.ErrFailedPrecondition)
	}
	return resp, nil
}

// retry calls a plugin, and once more on the new process if the old one ended during the call.
func retry[T any](ctx context.Context, m *Manager, key string, call func(*accelerator.Client) (T, error)) (T, error) {
	var none T
	for attempt := 0; ; attempt++ {
		c, err := m.client(ctx, key)
		if err != nil {
			return none, err
		}
		resp, err := call(c)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		err = native(ctx, err)
		if attempt == 2 || !errdefs.IsUnavailable(err) {
			return none, err
		}
		ended(ctx, c)
	}
}

// ended reports whether a process that did not respond has exited. The connection breaks before the
// exit is known.
func ended(ctx context.Context, c *accelerator.Client) bool {
	select {
	case <-c.Done():
		return true
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return false
}

// through completes a Prepare call even if its caller gives up, because a half-finished preparation
// cannot be undone. Unprepare waits for it; the call has its own deadline.
func (m *Manager) through(ctx context.Context, c *accelerator.Client, key string, req *acceleratorpb.PrepareRequest) (*acceleratorpb.PrepareResponse, error) {
	var (
		resp *acceleratorpb.PrepareResponse
		err  error
		a    = allocation{key, req.AllocationId}
		done = make(chan struct{})
	)
	m.mu.Lock()
	m.preparing[a] = done
	delete(m.owed, a)
	m.mu.Unlock()
	go func() {
		defer close(done)
		resp, err = c.Prepare(context.WithoutCancel(ctx), req)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.preparing, a)
		if err == nil {
			m.remember(a, req.Allocations, resp.GetState())
		}
	}()
	select {
	case <-done:
		return resp, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// native returns the error with its errdefs class. A call that was cancelled, but not by its
// caller, was interrupted by the end of the plugin.
func native(ctx context.Context, err error) error {
	if err = errgrpc.ToNative(err); errdefs.IsCanceled(err) && ctx.Err() == nil {
		return fmt.Errorf("the plugin has ended: %w", errdefs.ErrUnavailable)
	}
	return err
}

func (m *Manager) client(ctx context.Context, key string) (*accelerator.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, pluginWait)
	defer cancel()
	p := m.plugin(key)
	for p == nil && m.starting() && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		p = m.plugin(key)
	}
	if p == nil {
		return nil, fmt.Errorf("plugin %s is not configured on this node: %w", key, errdefs.ErrFailedPrecondition)
	}
	return p.host.Wait(ctx)
}

func (m *Manager) plugin(key string) *plugin {
	for _, p := range m.plugins {
		if p.Key() == key {
			return p
		}
	}
	return nil
}

// state returns the persistent directory of a plugin.
func (m *Manager) state(key string) string { return filepath.Join(m.cfg.Dir, "state", key) }

// work returns the directory in which a plugin creates files for one allocation.
func (m *Manager) work(key, id string) string { return filepath.Join(m.cfg.Dir, "work", key, id) }

// Remember records an allocation that was prepared before the agent restarted, so that its plugin
// receives it at its start.
func (m *Manager) Remember(id string, allocations []*agentpb.Allocation, states map[string][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, part := range m.split(allocations) {
		if state, ok := states[key]; ok {
			m.remember(allocation{key, id}, part, state)
		}
	}
}

func (m *Manager) remember(a allocation, part []*acceleratorpb.Allocation, state []byte) {
	m.prepared[a] = &acceleratorpb.LiveAllocation{AllocationId: a.id, Allocations: part, State: state}
}

// live returns a plugin's allocations for Restore, sorted.
func (m *Manager) live(key string) []*acceleratorpb.LiveAllocation {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*acceleratorpb.LiveAllocation
	for a, l := range m.prepared {
		if a.plugin == key {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(x, y *acceleratorpb.LiveAllocation) int { return strings.Compare(x.AllocationId, y.AllocationId) })
	return out
}
