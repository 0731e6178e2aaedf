package idle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/report"
)

// feed adds a sample to a series every 5 s, from one time to another.
func feed(s *Series, from, to time.Time, value float64) {
	for at := from; at.Before(to); at = at.Add(5 * time.Second) {
		s.add(at, value)
	}
}

func TestOver(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(*Series)
		span time.Duration
		now  time.Time
		want Level
		ok   bool
	}{
		{"nothing", func(*Series) {}, minutes(1), at(1), Level{}, false},
		{"a minute of one level", func(s *Series) { feed(s, at(0), at(5), 7) }, minutes(1), at(5), Level{7, 7}, true},
		{"younger than the window", func(s *Series) { feed(s, at(0), at(5), 7) }, minutes(6), at(5), Level{}, false},
		{"an hour, half of it busy", func(s *Series) { feed(s, at(-60), at(30), 0); feed(s, at(30), at(60), 50) }, minutes(60), at(60), Level{23, 50}, true},
		{"samples stopped two minutes ago", func(s *Series) { feed(s, at(0), at(60), 7) }, minutes(10), at(62), Level{}, false},
		{"a gap of a twentieth", func(s *Series) { feed(s, at(-60), at(30), 7); feed(s, at(33), at(60), 7) }, minutes(60), at(60), Level{7, 7}, true},
		{"a gap of a fifth", func(s *Series) { feed(s, at(-60), at(30), 7); feed(s, at(42), at(60), 7) }, minutes(60), at(60), Level{}, false},
		{"a day", func(s *Series) { feed(s, at(0), at(60*26), 3) }, 24 * time.Hour, at(60 * 26), Level{3, 3}, true},
		{"one sample a minute is not enough for a minute", func(s *Series) { s.add(at(0), 1); s.add(at(1), 1) }, minutes(1), at(1), Level{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Series
			c.fill(&s)
			got, ok := s.over(c.span, c.now)
			if ok != c.ok || math.Abs(got.Mean-c.want.Mean) > 2.5 || got.Peak != c.want.Peak {
				t.Errorf("%+v %v, want %+v %v", got, ok, c.want, c.ok)
			}
		})
	}
}

// The level of a series equals that of its samples, within the width of a piece and however long
// ago it began, and the memory is bounded.
func TestOverAgainstSamples(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		var s Series
		type sample struct {
			at    time.Time
			value float64
		}
		var all []sample
		now, level := start, 50.0
		for range 20_000 { // a little over a day
			now = now.Add(5 * time.Second)
			if r.IntN(300) == 0 {
				level = 100 * r.Float64()
			}
			s.add(now, level)
			all = append(all, sample{now, level})
		}
		for range 50 {
			span := time.Minute + time.Duration(r.Int64N(int64(24*time.Hour)))
			got, ok := s.over(span, now)
			if !ok {
				t.Fatalf("seed %d: %s is not known", seed, span)
			}
			mean := func(span time.Duration) float64 {
				sum, n := 0.0, 0
				for _, one := range all {
					if one.at.After(now.Add(-span)) {
						sum, n = sum+one.value, n+1
					}
				}
				return sum / float64(n)
			}
			// The window may begin earlier by up to one piece.
			low, high := math.Inf(1), math.Inf(-1)
			for _, more := range []time.Duration{0, span / 8, span / 4, 20 * time.Second} {
				m := mean(span + more)
				low, high = min(low, m), max(high, m)
			}
			if got.Mean < low-8 || got.Mean > high+8 {
				t.Errorf("seed %d: %.1f over %s, want %.1f to %.1f", seed, got.Mean, span, low, high)
			}
		}
		pieces := 0
		for _, list := range s.Pieces {
			pieces += len(list)
		}
		if pieces > kept*len(widths) {
			t.Errorf("seed %d: %d pieces", seed, pieces)
		}
	}
}

func TestLevels(t *testing.T) {
	got := levels([]report.Metric{
		{Name: "cpu_util", Value: 50, Capacity: 200, Unit: "percent"}, {Name: "cpu_used_ms", Value: 9, Unit: "ms"},
		{Name: "mem_used", Value: 1 << 20, Capacity: 4 << 20, Unit: "bytes"}, {Name: "net_rx", Value: 5, Unit: "bytes"},
		{Name: "cuda_util", DeviceID: "a", Value: 10, Capacity: 100, Unit: "percent"}, {Name: "cuda_util", DeviceID: "b", Value: 30, Capacity: 100, Unit: "percent"},
		{Name: "cuda_mem", DeviceID: "a", Value: 10, Capacity: 100, Unit: "bytes"}, {Name: "cuda_mem", DeviceID: "b", Quality: "unavailable", Capacity: 100},
		{Name: "gaudi_util", DeviceID: "a", Value: 12, Unit: "percent"}, {Name: "gaudi_mem", DeviceID: "a", Value: 12, Unit: "bytes"},
	})
	want := map[string]float64{"cpu": 25, "mem": 25, "cuda": 20, "gaudi": 12}
	if len(got) != len(want) {
		t.Errorf("levels %v, want %v", got, want)
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
}

func TestTogether(t *testing.T) {
	busy, free := History{"cpu": {}}, History{"cpu": {}}
	feed(busy["cpu"], at(0), at(10), 80)
	feed(free["cpu"], at(0), at(10), 0)
	if got, ok := together([]History{busy, free}, "cpu", minutes(1), at(10)); !ok || math.Abs(got.Mean-40) > 1e-6 || got.Peak != 80 {
		t.Errorf("both: %+v %v", got, ok)
	}
	if _, ok := together([]History{free, {}}, "cpu", minutes(1), at(10)); ok {
		t.Error("a kernel that was not measured counts as idle")
	}
	if _, ok := together(nil, "cpu", minutes(1), at(10)); ok {
		t.Error("no kernel at all counts as idle")
	}
}
