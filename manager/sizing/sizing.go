// Package sizing knows what sessions used of what they requested, and suggests sizes for the next session.
//
// The leader summarizes the history of measurements of a session (ADR 56): every quarter of an hour while it runs, and for the last time
// some minutes after its end, while the history has its finest grain.
package sizing

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/series"
)

// Quality says how much of a run was measured.
type Quality string

// The qualities. An unknown value is never 0.
const (
	Measured Quality = "measured" // nearly all of it, directly
	Partial  Quality = "partial"  // less, or values are estimated
	Unknown  Quality = "unknown"  // nothing
)

// Use is what a session used of one thing that is measured.
type Use struct {
	Metric  string
	Slot    string // that it is about, if the session has one
	Unit    string
	Asked   float64 // in the unit of the metric; 0: unknown
	Quality Quality
	// Of the run; they mean nothing with an unknown quality.
	Mean, P95, Peak float64
	Seconds         int64  // with measurements
	Suggested       *int64 // amount of the slot
}

// Run is what a session requested and how long it ran.
type Run struct {
	Slots   resource.Slots
	Minimum resource.Slots // of its image
	Kernels int
	Seconds float64
}

const (
	// spare is the factor from the 95th percentile to the suggestion.
	spare = 1.2
	// covered is the share of the run that must be measured.
	covered = 0.9
	// suggestAfter is the shortest run in seconds that is the basis of a suggestion: the first minute is not like the rest.
	suggestAfter = 120
)

// relevant reports whether a metric says how much of a slot is used.
func relevant(metric string) bool {
	return metric == "cpu_util" || metric == "mem_used" || strings.HasSuffix(metric, "_util") || strings.HasSuffix(metric, "_mem")
}

// slotOf returns the slot of a session that a metric is about.
func slotOf(metric string, slots resource.Slots) string {
	switch metric {
	case "cpu_util":
		return resource.CPU
	case "mem_used":
		return resource.Mem
	}
	key := metric[:strings.LastIndex(metric, "_")]
	for _, slot := range slots.Names() {
		if strings.HasPrefix(slot, key+".") && slots[slot] > 0 {
			return slot
		}
	}
	return ""
}

// Summarize returns the use of a session from the lines of its kernels, whose points are step apart. It has cpu, memory and the
// utilization of each kind of accelerator of the session, measured or not.
func Summarize(run Run, lines series.Lines, step time.Duration) []Use {
	found := map[string][]*series.Line{}
	kernels := map[string]map[uuid.UUID]bool{}
	for kernel, of := range lines {
		for k, l := range of {
			if !relevant(k.Name) || len(l.Points) == 0 {
				continue
			}
			found[k.Name] = append(found[k.Name], l)
			if kernels[k.Name] == nil {
				kernels[k.Name] = map[uuid.UUID]bool{}
			}
			kernels[k.Name][kernel] = true
		}
	}
	for _, name := range expected(run.Slots) {
		if _, ok := found[name]; !ok {
			found[name] = nil
		}
	}
	var out []Use
	for name, list := range found {
		u := summarize(run, list, step)
		if len(kernels[name]) < run.Kernels && u.Quality == Measured {
			u.Quality = Partial
		}
		u.Metric, u.Slot = name, slotOf(name, run.Slots)
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Use) int { return cmp.Compare(a.Metric, b.Metric) })
	suggest(run, out)
	return out
}

// expected are the metrics that a session should have.
func expected(slots resource.Slots) []string {
	out := []string{"cpu_util", "mem_used"}
	for _, slot := range slots.Names() {
		key, _, accelerator := strings.Cut(slot, ".")
		if accelerator && slots[slot] > 0 && !slices.Contains(out, key+"_util") {
			out = append(out, key+"_util")
		}
	}
	return out
}

// summarize adds the lines of one metric step by step. A step without a point of one of the lines is not part of it, because its sum
// would be too low; the peak of the sum is at most the sum of the peaks in one step.
func summarize(run Run, list []*series.Line, step time.Duration) Use {
	u := Use{Quality: Unknown}
	type sum struct {
		mean, high float64
		lines      int
	}
	sums := map[time.Time]*sum{}
	direct := true
	for _, l := range list {
		u.Unit = l.Unit
		u.Asked += l.Capacity
		direct = direct && l.Quality == "measured"
		for _, p := range l.Points {
			at := sums[p.At]
			if at == nil {
				at = &sum{}
				sums[p.At] = at
			}
			at.mean, at.high, at.lines = at.mean+p.Mean(), at.high+p.Max, at.lines+1
		}
	}
	var values []float64
	total := 0.0
	for _, s := range sums {
		if s.lines != len(list) {
			continue
		}
		values = append(values, s.mean)
		total += s.mean
		u.Peak = max(u.Peak, s.high)
	}
	if len(values) == 0 {
		return u
	}
	slices.Sort(values)
	u.Mean, u.P95 = total/float64(len(values)), values[(len(values)*95+99)/100-1]
	u.Seconds = int64(math.Min(run.Seconds, float64(len(values))*step.Seconds()))
	u.Quality = Partial
	// One step at each end is not complete.
	if direct && float64(u.Seconds) >= covered*(run.Seconds-2*step.Seconds()) {
		u.Quality = Measured
	}
	return u
}

// suggest sets the suggested amounts. Only what was measured is the basis of one: for an accelerator its utilization, and its memory
// where that is measured.
func suggest(run Run, uses []Use) {
	if run.Seconds < suggestAfter || run.Kernels != 1 { // amounts are for each container, and containers differ
		return
	}
	for i := range uses {
		u := &uses[i]
		if u.Quality != Measured || u.Slot == "" || run.Slots[u.Slot] <= 0 {
			continue
		}
		asked := run.Slots[u.Slot]
		var amount float64
		switch {
		case u.Metric == "cpu_util": // percent of a core; amounts have thousandths of cores
			amount = roundUp(u.P95*spare*10, 100)
		case u.Metric == "mem_used": // never below what it had reached
			amount = roundUp(max(u.P95*spare, u.Peak), 64<<20)
		case strings.HasSuffix(u.Metric, "_util") && u.Asked > 0:
			share := u.P95 * spare / u.Asked
			if mem, ok := memoryShare(uses, u.Metric); ok {
				share = max(share, mem)
			}
			unit := 1.0
			if resource.Scale(u.Slot) > 0 {
				unit = 100 // a tenth of a device
			}
			amount = min(roundUp(share*float64(asked), unit), float64(asked))
		default:
			continue
		}
		n := max(int64(amount), run.Minimum[u.Slot], 1)
		u.Suggested = &n
	}
}

// memoryShare returns the part of an accelerator's memory that was in use at most.
func memoryShare(uses []Use, util string) (float64, bool) {
	name := strings.TrimSuffix(util, "_util") + "_mem"
	for _, u := range uses {
		if u.Metric == name && u.Quality != Unknown && u.Asked > 0 {
			return u.Peak / u.Asked, true
		}
	}
	return 0, false
}

func roundUp(v, unit float64) float64 { return math.Ceil(v/unit-1e-9) * unit }
