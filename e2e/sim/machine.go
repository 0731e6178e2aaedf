package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
)

// machine simulates an agent by its contract, and the machine below it. Containers outlive the
// agent's process, and records also outlive a reboot.
type machine struct {
	w    *world
	name string

	// The machine.
	capacity map[string]resource.Slots // by device
	images   map[string]bool
	kernels  map[string]*box // records, by kernel
	epoch    int64           // highest epoch so far, stored on disk
	boots    int

	// The agent's process.
	up          bool
	incarnation string
	unplugged   bool // the plugin has lost its devices
	tunnels     []*tunnel
	watchers    []*stream

	cut [2]cut // interrupted connections, by manager

	troubled time.Time // when its tunnels last began or ended
}

// cut has the interrupted directions between a machine and a manager.
type cut struct{ to, from bool }

func (c cut) any() bool { return c.to || c.from }

const (
	heartbeatEvery = 8 * time.Second // less often than an agent's 3 s, for speed
	architecture   = "amd64"
)

// build creates a machine with random properties.
func (w *world) build(name string) *machine {
	m := &machine{
		w: w, name: name, capacity: map[string]resource.Slots{}, images: map[string]bool{}, kernels: map[string]*box{},
		up: true,
	}
	m.capacity["cpu"] = resource.Slots{resource.CPU: int64(2+w.IntN(7)) * 1000}
	m.capacity["mem"] = resource.Slots{resource.Mem: int64(4+w.IntN(13)) << 30}
	for i := range w.IntN(4) {
		m.capacity[fmt.Sprintf("mock:gpu-%d", i)] = resource.Slots{"mock.shares": 1000}
	}
	if w.chance(0.5) {
		m.images[images[0]] = true
	}
	m.begin()
	return m
}

// begin starts the agent's process: it recovers its kernels.
func (m *machine) begin() {
	m.boots++
	m.up, m.incarnation = true, fmt.Sprintf("%s-%d", m.name, m.boots)
	for _, id := range slices.Sorted(maps.Keys(m.kernels)) {
		m.kernels[id].recover()
	}
}

// stop ends the agent's process; containers continue.
func (m *machine) stop() {
	m.up, m.watchers = false, nil
	for _, t := range m.tunnels {
		t.end()
	}
}

// reboot ends everything on the host.
func (m *machine) reboot() {
	m.stop()
	for _, b := range m.kernels {
		if b.container == making || b.container == running {
			b.container = gone
		}
	}
}

func (m *machine) fence(epoch int64) error {
	if epoch <= 0 {
		return fmt.Errorf("epoch %d is not that of a leader: %w", epoch, errdefs.ErrInvalidArgument)
	}
	if epoch < m.epoch {
		return fmt.Errorf("epoch %d is over; the leader has epoch %d: %w", epoch, m.epoch, errdefs.ErrFailedPrecondition)
	}
	m.epoch = epoch
	return nil
}

// handle answers a call with one answer. It has the turn, and releases it only to wait for the end
// of an earlier launch.
func (m *machine) handle(ctx context.Context, method string, req proto.Message) (proto.Message, error) {
	switch r := req.(type) {
	case *agentpb.CreateKernelRequest:
		s, err := m.create(ctx, r)
		if err != nil {
			return nil, err
		}
		return proto.Clone(s), nil
	case *agentpb.TerminateKernelRequest:
		s, err := m.terminate(r)
		if err != nil {
			return nil, err
		}
		return proto.Clone(s), nil
	case *agentpb.ForgetKernelRequest:
		if err := m.fence(r.Epoch); err != nil {
			return nil, err
		}
		if b := m.kernels[r.KernelId]; b != nil && b.state.Phase != agentpb.KernelState_EXITED {
			return nil, fmt.Errorf("kernel %s has not ended: %w", r.KernelId, errdefs.ErrFailedPrecondition)
		}
		delete(m.kernels, r.KernelId)
		return &agentpb.ForgetKernelResponse{}, nil
	}
	return nil, fmt.Errorf("%s: %w", method, errdefs.ErrNotImplemented)
}

// supersedeWait is how long a new launch waits for the end of an earlier one.
const supersedeWait = 20 * time.Second

func (m *machine) create(ctx context.Context, r *agentpb.CreateKernelRequest) (*agentpb.KernelState, error) {
	if err := m.fence(r.Epoch); err != nil {
		return nil, err
	}
	began, life := time.Now(), m.incarnation
	for {
		old := m.kernels[r.KernelId]
		if old == nil || old.req.LaunchEpoch < r.LaunchEpoch && old.state.Phase == agentpb.KernelState_EXITED {
			return m.accept(r)
		}
		switch {
		case r.LaunchEpoch < old.req.LaunchEpoch:
			return nil, fmt.Errorf("kernel %s: launch %d was replaced by launch %d: %w", r.KernelId, r.LaunchEpoch, old.req.LaunchEpoch, errdefs.ErrFailedPrecondition)
		case r.LaunchEpoch == old.req.LaunchEpoch:
			return old.state, nil
		}
		old.stop(0, "superseded by a later launch")
		if time.Since(began) > supersedeWait {
			return nil, fmt.Errorf("kernel %s: an earlier launch has not ended: %w", r.KernelId, errdefs.ErrUnavailable)
		}
		if err := sleep(ctx, 211*time.Millisecond); err != nil {
			return nil, err
		}
		m.w.enter(m.name+" waits for the end of an earlier launch", r.KernelId)
		if !m.up || m.incarnation != life {
			return nil, fmt.Errorf("agent is stopping: %w", errdefs.ErrUnavailable)
		}
	}
}

// accept starts a launch after all checks.
func (m *machine) accept(r *agentpb.CreateKernelRequest) (*agentpb.KernelState, error) {
	if !m.images[r.Image] {
		return nil, fmt.Errorf("image %s is not on this node: %w", r.Image, errdefs.ErrNotFound)
	}
	if err := m.allocate(r); err != nil {
		return nil, err
	}
	b := newBox(m, r)
	m.w.began(b)
	m.kernels[r.KernelId] = b
	b.make()
	return b.state, nil
}

// allocate checks that the amounts are free: the capacity minus the amounts of live kernels.
func (m *machine) allocate(r *agentpb.CreateKernelRequest) error {
	held := m.allocated()
	for _, a := range r.Allocations {
		n, err := resource.Parse(a.Slot, a.Amount)
		if err != nil || n <= 0 {
			return fmt.Errorf("device %s: amount %s: %w", a.DeviceId, a.Amount, errdefs.ErrInvalidArgument)
		}
		has, ok := m.capacity[a.DeviceId][a.Slot]
		switch {
		case !ok || m.missing(a.DeviceId):
			return fmt.Errorf("device %s is not on this node: %w", a.DeviceId, errdefs.ErrNotFound)
		case held[a.DeviceId][a.Slot]+n > has:
			m.w.exhausted(m, r, a.DeviceId)
			return fmt.Errorf("device %s has %d of %d %s left, not %d: %w", a.DeviceId, has-held[a.DeviceId][a.Slot], has, a.Slot, n, errdefs.ErrResourceExhausted)
		}
		if held[a.DeviceId] == nil {
			held[a.DeviceId] = resource.Slots{}
		}
		held[a.DeviceId][a.Slot] += n
	}
	return nil
}

// allocated returns the sum of the amounts of live kernels, by device.
func (m *machine) allocated() map[string]resource.Slots {
	sum := map[string]resource.Slots{}
	for _, b := range m.kernels {
		if b.state.Phase == agentpb.KernelState_EXITED {
			continue
		}
		for _, a := range b.req.Allocations {
			n, _ := resource.Parse(a.Slot, a.Amount)
			if sum[a.DeviceId] == nil {
				sum[a.DeviceId] = resource.Slots{}
			}
			sum[a.DeviceId][a.Slot] += n
		}
	}
	return sum
}

func (m *machine) missing(device string) bool {
	return m.unplugged && strings.HasPrefix(device, "mock:")
}

func (m *machine) terminate(r *agentpb.TerminateKernelRequest) (*agentpb.KernelState, error) {
	if err := m.fence(r.Epoch); err != nil {
		return nil, err
	}
	b := m.kernels[r.KernelId]
	if b == nil {
		return &agentpb.KernelState{KernelId: r.KernelId, Phase: agentpb.KernelState_EXITED, Reason: "not-found", Message: "not on this node"}, nil
	}
	if b.state.Phase != agentpb.KernelState_EXITED {
		grace := time.Duration(r.GraceMs) * time.Millisecond
		if r.GraceMs <= 0 {
			grace = 10 * time.Second
		}
		b.stop(grace, r.Reason)
	}
	return b.state, nil
}

// watch sends a full report, then changes and heartbeats.
func (m *machine) watch(s *stream, r *agentpb.WatchRequest) {
	w := m.w
	if r.Epoch != 0 {
		if err := m.fence(r.Epoch); err != nil {
			s.finish(err)
			return
		}
	}
	m.watchers = append(m.watchers, s)
	s.send(m.report())
	life, wait := m.incarnation, w.between(time.Second, heartbeatEvery)
	for s.t.wait(s.ctx, wait) == nil {
		w.enter(m.name + " heartbeat for " + s.t.p.name)
		if !m.up || m.incarnation != life || s.t.ctx.Err() != nil || s.ctx.Err() != nil {
			break
		}
		s.send(&agentpb.Event{Event: &agentpb.Event_Heartbeat{Heartbeat: &agentpb.Heartbeat{UnixMs: time.Now().UnixMilli()}}})
		wait = w.between(heartbeatEvery-time.Second, heartbeatEvery)
	}
	w.enter(m.name + " no longer watched by " + s.t.p.name)
	m.watchers = slices.DeleteFunc(m.watchers, func(o *stream) bool { return o == s })
}

// publish sends an event to all watchers.
func (m *machine) publish(e *agentpb.Event) {
	if !m.up {
		return
	}
	for _, s := range m.watchers {
		s.send(e)
	}
}

func (m *machine) report() *agentpb.Event {
	r := &agentpb.Report{
		Name: m.name, Incarnation: m.incarnation, Version: "sim", Architecture: architecture, ResourceGroup: "default",
		SlotTypes: []*agentpb.SlotType{
			{Name: resource.CPU, Kind: agentpb.SlotType_SHARES, Quantum: "0.001"},
			{Name: resource.Mem, Kind: agentpb.SlotType_BYTES, Quantum: "1"},
			{Name: "mock.shares", Kind: agentpb.SlotType_SHARES, Quantum: "0.001"},
		},
		Images:  slices.Sorted(maps.Keys(m.images)),
		Overlay: &agentpb.Overlay{Endpoint: "198.51.100.1:4789", Mtu: 1450},
	}
	held := m.allocated()
	for _, id := range slices.Sorted(maps.Keys(m.capacity)) {
		d := &agentpb.Device{Id: id, Capacity: m.capacity[id].Strings(), Allocatable: true}
		if m.missing(id) {
			if held[id] == nil {
				continue
			}
			d.Health, d.HealthMessage, d.Allocatable = agentpb.Device_LOST, "no longer reported by its plugin", false
		}
		r.Devices = append(r.Devices, d)
	}
	for _, id := range slices.Sorted(maps.Keys(m.kernels)) {
		r.Kernels = append(r.Kernels, proto.Clone(m.kernels[id].state).(*agentpb.KernelState))
	}
	return &agentpb.Event{Event: &agentpb.Event_Report{Report: r}}
}

// pull fetches an image, or fails.
func (m *machine) pull(s *stream, r *agentpb.PullImageRequest) {
	w := m.w
	life, takes := m.incarnation, w.between(200*time.Millisecond, 8*time.Second)
	flaky := !w.calm && w.chance(w.mood.image)
	s.send(&agentpb.PullProgress{Reference: r.Reference, Phase: "resolving"})
	if s.t.wait(s.ctx, takes) != nil {
		return
	}
	w.enter(m.name + " has pulled " + r.Reference)
	switch {
	case !m.up || m.incarnation != life:
		return
	case !slices.Contains(images, r.Reference):
		s.finish(fmt.Errorf("image %s: %w", r.Reference, errdefs.ErrNotFound))
		return
	case flaky:
		s.finish(fmt.Errorf("registry answers 500: %w", errdefs.ErrInternal))
		return
	}
	m.images[r.Reference] = true
	done := &agentpb.PullProgress{Reference: r.Reference, Phase: "done", Done: true}
	m.publish(&agentpb.Event{Event: &agentpb.Event_Pull{Pull: done}})
	s.send(done)
	m.publish(m.report())
	s.finish(nil)
}
