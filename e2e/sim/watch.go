package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/resource"
)

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

// tell sends an event to everyone who watches.
func (m *machine) tell(e *agentpb.Event) {
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
	held := m.held()
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

// pull fetches an image, or cannot.
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
	m.tell(&agentpb.Event{Event: &agentpb.Event_Pull{Pull: done}})
	s.send(done)
	m.tell(m.report())
	s.finish(nil)
}
