package expression

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const (
	// maxSeries limits the series of one replica. With a sample every 5 s for MaxReach, they take less than 2 MB.
	maxSeries = 500
	// minGap is the time between two samples of a series that are kept.
	minGap = 4 * time.Second
	// replicaLabel names the replica of a series. A label of the engine with this name is kept as exported_replica.
	replicaLabel = "replica"
)

// point is a sample; the time is in milliseconds.
type point struct {
	at    int64
	value float64
}

type series struct {
	labels labels.Labels
	points []point // the oldest first
}

// History keeps the samples of one replica that its expressions read. It is safe for concurrent use.
type History struct {
	replica string

	mu     sync.Mutex
	wanted []*Expression
	reach  time.Duration
	all    map[model.Fingerprint]*series
	last   time.Time // of the last samples; zero without any
	over   bool      // the expressions read more than maxSeries
}

// NewHistory returns the history of a replica.
func NewHistory(replica string) *History {
	return &History{replica: replica, all: map[model.Fingerprint]*series{}}
}

// Want replaces the expressions. Samples that none of them reads are forgotten.
func (h *History) Want(list []*Expression) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Equal(h.wanted, list) {
		return
	}
	h.wanted, h.reach, h.over = list, 0, false
	for _, e := range list {
		h.reach = max(h.reach, e.reach)
	}
	for id, s := range h.all {
		if !h.reads(s.labels) {
			delete(h.all, id)
		}
	}
}

func (h *History) reads(of labels.Labels) bool {
	return slices.ContainsFunc(h.wanted, func(e *Expression) bool { return e.selects(of) })
}

// Add adds the samples of one read of the engine's metrics.
func (h *History) Add(now time.Time, samples model.Vector) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.wanted) == 0 || now.Sub(h.last) < minGap {
		return
	}
	h.last = now
	h.forget(now)
	for _, x := range samples {
		id := x.Metric.Fingerprint()
		s := h.all[id]
		if s == nil {
			of := h.labelsOf(x.Metric)
			if !h.reads(of) {
				continue
			}
			if len(h.all) == maxSeries {
				h.over = true
				continue
			}
			s = &series{labels: of}
			h.all[id] = s
		}
		s.points = append(s.points, point{now.UnixMilli(), float64(x.Value)})
	}
}

// forget drops samples that no expression reads any longer.
func (h *History) forget(now time.Time) {
	oldest := now.Add(-h.reach).UnixMilli()
	for id, s := range h.all {
		n := 0
		for n < len(s.points) && s.points[n].at < oldest {
			n++
		}
		if s.points = slices.Delete(s.points, 0, n); len(s.points) == 0 {
			delete(h.all, id)
		}
	}
}

func (h *History) labelsOf(m model.Metric) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for name, value := range m {
		if name == replicaLabel {
			name = "exported_" + replicaLabel
		}
		b.Set(string(name), string(value))
	}
	return b.Set(replicaLabel, h.replica).Labels()
}

// current reports whether the history has a recent sample and everything that its expressions read.
func (h *History) current(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over && now.Sub(h.last) <= lookback
}

// find returns copies of the series that matchers select, with the samples between two times.
func (h *History) find(from, to int64, by []*labels.Matcher) (out []series) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.all {
		if !matches(by, s.labels) {
			continue
		}
		one := series{labels: s.labels}
		for _, p := range s.points {
			if p.at >= from && p.at <= to {
				one.points = append(one.points, p)
			}
		}
		if len(one.points) > 0 {
			out = append(out, one)
		}
	}
	return out
}
