package idle

import (
	"math"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/report"
)

const (
	// kept is the number of pieces of each width in a series.
	kept = 32
	// gap is the longest time that one sample represents: six intervals of the agents, so that two
	// or three lost samples leave no gap.
	gap = 30 * time.Second
	// stale is the age at which the last sample no longer counts as current.
	stale = time.Minute
	// covered is the fraction of a window that must be measured.
	covered = 0.9
)

// widths of pieces. 31 pieces of one width cover more time than one piece of the next width,
// and those of the last width more than a year.
var widths = []time.Duration{
	15 * time.Second, 90 * time.Second, 9 * time.Minute, time.Hour, 6 * time.Hour, 36 * time.Hour, 12 * 24 * time.Hour,
}

// memory is the suffix of a series of accelerator memory.
const memory = ".mem"

// Piece is the measurement of one interval.
type Piece struct {
	N          int64 // start, in widths since 1970
	Mean, Peak float32
	Seconds    float32 // measured seconds
}

// Series is the measurement of one value. Older pieces are wider.
type Series struct {
	Last   time.Time
	Pieces [][]Piece // by width
}

// add adds a sample, which counts for the time since the previous one.
func (s *Series) add(at time.Time, value float64) {
	known := at.Sub(s.Last)
	switch {
	case s.Last.IsZero():
		known = 0
	case known < 0:
		return
	}
	known = min(known, gap)
	s.Last = at
	for len(s.Pieces) < len(widths) {
		s.Pieces = append(s.Pieces, nil)
	}
	for i, w := range widths {
		n, list := at.UnixNano()/int64(w), s.Pieces[i]
		if len(list) == 0 || list[len(list)-1].N != n {
			if len(list) == kept {
				copy(list, list[1:])
				list = list[:kept-1]
			}
			list = append(list, Piece{N: n, Mean: float32(value)})
			s.Pieces[i] = list
		}
		p := &list[len(list)-1]
		p.Peak = max(p.Peak, float32(value))
		if known > 0 {
			p.Seconds += float32(known.Seconds())
			p.Mean += float32((value - float64(p.Mean)) * known.Seconds() / float64(p.Seconds))
		}
	}
}

// over returns the level over the span until now, and whether enough of it is measured.
func (s *Series) over(span time.Duration, now time.Time) (Level, bool) {
	for i, w := range widths {
		if w*(kept-1) < span && i < len(widths)-1 || i >= len(s.Pieces) {
			continue
		}
		if now.Sub(s.Last) > max(stale, min(w, span/10)) {
			return Level{}, false
		}
		from := now.Add(-span).UnixNano() / int64(w) // the piece in which the span begins is included completely
		var sum, known, peak float64
		for _, p := range s.Pieces[i] {
			if p.N < from {
				continue
			}
			sum += float64(p.Mean) * float64(p.Seconds)
			known += float64(p.Seconds)
			peak = max(peak, float64(p.Peak))
		}
		whole := now.Sub(time.Unix(0, from*int64(w))).Seconds()
		if known <= 0 || known < covered*whole {
			return Level{}, false
		}
		return Level{Mean: sum / known, Peak: peak}, true
	}
	return Level{}, false
}

// History is the measurements of one kernel, by series: cpu, mem, and for each plugin its key
// and its key with .mem.
type History map[string]*Series

// add adds the samples of one moment.
func (h History) add(at time.Time, metrics []report.Metric) {
	for name, value := range levels(metrics) {
		if h[name] == nil {
			h[name] = &Series{}
		}
		h[name].add(at, value)
	}
}

// levels returns the utilization in percent of the allocated capacity, over all devices of a
// kind. It leaves out a kind if a device of it was not measured.
func levels(metrics []report.Metric) map[string]float64 {
	type sum struct{ value, capacity float64 }
	sums := map[string]sum{}
	unknown := map[string]bool{}
	for _, m := range metrics {
		name, ok := seriesOf(m.Name)
		if !ok {
			continue
		}
		capacity := m.Capacity
		if capacity == 0 && m.Unit == "percent" {
			capacity = 100
		}
		if m.Quality == "unavailable" || capacity <= 0 || math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			unknown[name] = true
			continue
		}
		s := sums[name]
		sums[name] = sum{s.value + max(m.Value, 0), s.capacity + capacity}
	}
	out := map[string]float64{}
	for name, s := range sums {
		if !unknown[name] {
			out[name] = 100 * s.value / s.capacity
		}
	}
	return out
}

// seriesOf returns the series of a metric.
func seriesOf(metric string) (string, bool) {
	switch metric {
	case "cpu_util":
		return "cpu", true
	case "mem_used":
		return "mem", true
	}
	if key, ok := strings.CutSuffix(metric, "_util"); ok {
		return key, true
	}
	if key, ok := strings.CutSuffix(metric, "_mem"); ok {
		return key + memory, true
	}
	return "", false
}

// together returns the level of a session over its kernels. If one kernel has not enough
// measurements, the level is unknown.
func together(kernels []History, series string, span time.Duration, now time.Time) (Level, bool) {
	var all Level
	for _, h := range kernels {
		s := h[series]
		if s == nil {
			return Level{}, false
		}
		l, ok := s.over(span, now)
		if !ok {
			return Level{}, false
		}
		all.Mean += l.Mean / float64(len(kernels))
		all.Peak = max(all.Peak, l.Peak)
	}
	return all, len(kernels) > 0
}
