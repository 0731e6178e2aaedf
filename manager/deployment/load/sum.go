package load

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Total is what all gateways say about a deployment.
type Total struct {
	InFlight    int
	Waiting     int
	LastRequest time.Time
	Replicas    map[uuid.UUID]Replica
	// Oldest is the smallest version that a gateway has read; 0 without a gateway.
	Oldest int
}

// Sum adds the reports of all gateways. The rates of a minute add up, because every gateway counts its own requests.
func Sum(reports ...Report) Total {
	t := Total{Replicas: map[uuid.UUID]Replica{}}
	for _, r := range reports {
		t.Waiting += r.Waiting
		if r.LastRequest.After(t.LastRequest) {
			t.LastRequest = r.LastRequest
		}
		if t.Oldest == 0 || r.Version < t.Oldest {
			t.Oldest = r.Version
		}
		for id, one := range r.Replicas {
			sum := t.Replicas[id]
			sum.Revision, sum.InFlight, sum.Ejected = one.Revision, sum.InFlight+one.InFlight, sum.Ejected || one.Ejected
			sum.Window.Add(one.Window)
			t.Replicas[id] = sum
			t.InFlight += one.InFlight
		}
	}
	return t
}

// All returns the window of all replicas, or of those of one revision; 0 = all.
func (t Total) All(revision int) Window {
	var w Window
	for _, id := range t.IDs() {
		if r := t.Replicas[id]; revision == 0 || r.Revision == revision {
			w.Add(r.Window)
		}
	}
	return w
}

// IDs returns the replicas, the oldest first.
func (t Total) IDs() []uuid.UUID {
	return slices.SortedFunc(maps.Keys(t.Replicas), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}

// Add adds the counts of another window of the same minute.
func (w *Window) Add(o Window) {
	w.Seconds = max(w.Seconds, o.Seconds)
	w.Requests += o.Requests
	w.Errors += o.Errors
	w.Prompt += o.Prompt
	w.Completion += o.Completion
	w.Cached += o.Cached
	w.FirstByte.Merge(o.FirstByte)
	w.PerToken.Merge(o.PerToken)
}

// Rate returns a count of the window per second.
func (w Window) Rate(count int) float64 {
	if w.Seconds <= 0 {
		return 0
	}
	return float64(count) / w.Seconds
}

// Share returns a part of a count, from 0 to 1; 0 of nothing.
func Share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
