package agent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
)

// Watch sends a full report, then changes as they happen.
func (s *server) Watch(r *agentpb.WatchRequest, stream grpc.ServerStreamingServer[agentpb.Event]) error {
	if r.Epoch != 0 {
		if err := s.a.kernels.Fence(r.Epoch); err != nil {
			return err
		}
	}
	if s.a.node != nil {
		s.a.node.Learn(r.Managers...)
	}
	// The subscription precedes the report, so that no change is lost between the two.
	w, cancel := s.a.hub.subscribe()
	defer cancel()
	if err := s.sendReport(stream); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-beat.C:
			if err := stream.Send(s.a.heartbeat()); err != nil {
				return err
			}
		case <-w.wake:
			if err := s.sendChanges(stream, w); err != nil {
				return err
			}
		}
	}
}

func (a *Agent) heartbeat() *agentpb.Event {
	return &agentpb.Event{Event: &agentpb.Event_Heartbeat{Heartbeat: &agentpb.Heartbeat{
		UnixMs: time.Now().UnixMilli(), Conditions: a.monitor.List(),
	}}}
}

func (s *server) sendReport(stream grpc.ServerStreamingServer[agentpb.Event]) error {
	report, err := s.a.report(stream.Context())
	if err != nil {
		return err
	}
	return stream.Send(&agentpb.Event{Event: &agentpb.Event_Report{Report: report}})
}

func (s *server) sendChanges(stream grpc.ServerStreamingServer[agentpb.Event], w *watcher) error {
	full, beat, events := w.take()
	if full {
		if err := s.sendReport(stream); err != nil {
			return err
		}
	}
	if beat {
		if err := stream.Send(s.a.heartbeat()); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// report returns everything that a manager needs to know about the node.
func (a *Agent) report(ctx context.Context) (*agentpb.Report, error) {
	r := &agentpb.Report{
		Name: a.cfg.Name, Incarnation: a.incarnation, Version: a.cfg.Version, Architecture: architecture,
		ResourceGroup: a.cfg.ResourceGroup, Probes: a.probes, Address: a.cfg.Address, Zone: a.cfg.Zone,
		Volumes:    a.volumes.Names(),
		Conditions: a.monitor.List(),
	}
	overlay, probe := a.overlay()
	if r.Overlay = overlay; probe != nil {
		r.Probes = append(slices.Clip(r.Probes), probe)
	}
	a.devices.Describe(r)
	for _, k := range a.kernels.List() {
		r.Kernels = append(r.Kernels, k.State())
	}
	images, err := a.runtime.Images(ctx)
	if err != nil {
		return nil, err
	}
	for _, img := range images {
		r.Images = append(r.Images, img.Reference)
		if c, err := contentOf(img); err == nil {
			r.Contents = append(r.Contents, c)
		}
	}
	a.describeLayers(r)
	return r, nil
}

// hub publishes changes to all watchers. A change that a slow watcher has not fetched yet is
// replaced by the next one, so a watcher needs memory per kernel and image, not per change.
type hub struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
}

// watcher is one open Watch.
type watcher struct {
	wake chan struct{}

	mu      sync.Mutex
	report  bool
	kernels map[string]*agentpb.KernelState
	order   []string // in the order in which kernels changed
	pulls   map[string]*agentpb.PullProgress
	stats   *agentpb.StatsReport
	beat    bool // conditions have changed and must not wait for the next heartbeat
}

func newHub() *hub { return &hub{watchers: map[*watcher]bool{}} }

func (h *hub) subscribe() (w *watcher, cancel func()) {
	w = &watcher{wake: make(chan struct{}, 1), kernels: map[string]*agentpb.KernelState{}, pulls: map[string]*agentpb.PullProgress{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = true
	return w, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, w)
	}
}

func (h *hub) each(f func(*watcher)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.mu.Lock()
		f(w)
		w.mu.Unlock()
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (h *hub) reportChanged() { h.each(func(w *watcher) { w.report = true }) }

func (h *hub) conditionsChanged() { h.each(func(w *watcher) { w.beat = true }) }

func (h *hub) kernelChanged(s *agentpb.KernelState) {
	h.each(func(w *watcher) {
		if w.kernels[s.KernelId] == nil {
			w.order = append(w.order, s.KernelId)
		}
		w.kernels[s.KernelId] = s
	})
}

func (h *hub) pulled(p *agentpb.PullProgress) {
	h.each(func(w *watcher) { w.pulls[p.Reference] = p })
}

func (h *hub) sampled(s *agentpb.StatsReport) { h.each(func(w *watcher) { w.stats = s }) }

// take removes and returns all pending changes. If report is set, the caller must send a full
// report, which includes the kernels; if beat is set, it must send a heartbeat before the events.
func (w *watcher) take() (report, beat bool, events []*agentpb.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	report, beat = w.report, w.beat
	for _, id := range w.order {
		events = append(events, &agentpb.Event{Event: &agentpb.Event_Kernel{Kernel: w.kernels[id]}})
	}
	for _, ref := range slices.Sorted(maps.Keys(w.pulls)) {
		events = append(events, &agentpb.Event{Event: &agentpb.Event_Pull{Pull: w.pulls[ref]}})
	}
	if w.stats != nil {
		events = append(events, &agentpb.Event{Event: &agentpb.Event_Stats{Stats: w.stats}})
	}
	w.report, w.beat, w.order, w.stats = false, false, nil, nil
	clear(w.kernels)
	clear(w.pulls)
	return report, beat, events
}
