package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/berthhq/berth/agent/agentpb"
)

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
