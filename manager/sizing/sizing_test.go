package sizing_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/manager/sizing"
)

var begin = time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)

// measure is one metric of a kernel: a sample every 10 s.
type measure struct {
	name, device, unit, quality string
	capacity                    float64
	value                       func(i int) float64
	n                           int
}

func linesOf(kernel uuid.UUID, list ...measure) series.Lines {
	out := series.Lines{}
	for _, m := range list {
		l := out.Line(kernel, series.Key{Name: m.name, Device: m.device})
		for i := range m.n {
			l.Append(series.Line{Unit: m.unit, Capacity: m.capacity, Quality: m.quality, Points: []series.Point{series.Sample(begin.Add(time.Duration(i)*10*time.Second), m.value(i))}})
		}
	}
	return out
}

func constant(v float64) func(int) float64 { return func(int) float64 { return v } }

func of(t *testing.T, uses []sizing.Use, metric string) sizing.Use {
	t.Helper()
	for _, u := range uses {
		if u.Metric == metric {
			return u
		}
	}
	t.Fatalf("no %s in %+v", metric, uses)
	return sizing.Use{}
}

const gib = 1 << 30

func run(minutes float64) sizing.Run {
	return sizing.Run{Slots: resource.Slots{"cpu": 8000, "mem": 16 * gib, "cuda.shares": 1000}, Minimum: resource.Slots{"mem": 3 * gib}, Kernels: 1, Seconds: minutes * 60}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	lines := linesOf(uuid.New(),
		measure{name: "cpu_util", unit: "percent", quality: "measured", capacity: 800, n: 60, value: func(i int) float64 { return []float64{100, 150}[i%2] }},
		measure{name: "mem_used", unit: "bytes", quality: "measured", capacity: 16 * gib, n: 60, value: func(i int) float64 { return []float64{gib, 5 * gib}[i/59] }},
		measure{name: "cuda_util", device: "G1", unit: "percent", quality: "measured", capacity: 100, n: 60, value: constant(20)},
		measure{name: "cuda_mem", device: "G1", unit: "bytes", quality: "measured", capacity: 10 * gib, n: 60, value: constant(9 * gib)},
		measure{name: "net_rx", unit: "bytes", quality: "measured", n: 60, value: constant(1)})
	uses := sizing.Summarize(run(10), lines, 10*time.Second)
	if u := of(t, uses, "cpu_util"); u.Mean != 125 || u.P95 != 150 || u.Peak != 150 || u.Quality != sizing.Measured || *u.Suggested != 1800 {
		t.Errorf("%+v", u)
	}
	// The peak of the memory decides, not its 95th percentile.
	if u := of(t, uses, "mem_used"); u.P95 != gib || *u.Suggested != 5*gib {
		t.Errorf("%+v", u)
	}
	// A session that fills the memory of its accelerator needs it, though it computes little.
	if u := of(t, uses, "cuda_util"); u.Slot != "cuda.shares" || *u.Suggested != 900 {
		t.Errorf("%+v, suggested %d", u, *u.Suggested)
	}
	if len(uses) != 4 {
		t.Errorf("%d metrics: %+v", len(uses), uses)
	}
}

func TestMinimumOfTheImage(t *testing.T) {
	t.Parallel()
	lines := linesOf(uuid.New(), measure{name: "mem_used", unit: "bytes", quality: "measured", capacity: 16 * gib, n: 60, value: constant(gib)})
	if u := of(t, sizing.Summarize(run(10), lines, 10*time.Second), "mem_used"); *u.Suggested != 3*gib {
		t.Errorf("%+v", u)
	}
}

// What was not measured is unknown, and what was measured in part or estimated suggests nothing.
func TestQuality(t *testing.T) {
	t.Parallel()
	kernel := uuid.New()
	half := measure{name: "cpu_util", unit: "percent", quality: "measured", capacity: 800, n: 30, value: constant(100)}
	estimated := measure{name: "cpu_util", unit: "percent", quality: "estimated", capacity: 800, n: 60, value: constant(100)}
	whole := measure{name: "cpu_util", unit: "percent", quality: "measured", capacity: 800, n: 60, value: constant(100)}
	two := run(10)
	two.Kernels = 2
	for name, tt := range map[string]struct {
		run   sizing.Run
		lines series.Lines
		want  sizing.Quality
		some  bool
	}{
		"nothing":              {run(10), series.Lines{}, sizing.Unknown, false},
		"half of the run":      {run(10), linesOf(kernel, half), sizing.Partial, false},
		"estimated":            {run(10), linesOf(kernel, estimated), sizing.Partial, false},
		"one of two kernels":   {two, linesOf(kernel, whole), sizing.Partial, false},
		"too short to suggest": {run(1), linesOf(kernel, whole), sizing.Measured, false},
		"all":                  {run(10), linesOf(kernel, whole), sizing.Measured, true},
	} {
		uses := sizing.Summarize(tt.run, tt.lines, 10*time.Second)
		if u := of(t, uses, "cpu_util"); u.Quality != tt.want || (u.Suggested != nil) != tt.some {
			t.Errorf("%s: %+v", name, u)
		}
		if u := of(t, uses, "cuda_util"); u.Quality != sizing.Unknown || u.Suggested != nil {
			t.Errorf("%s: an accelerator without measurements: %+v", name, u)
		}
	}
}
