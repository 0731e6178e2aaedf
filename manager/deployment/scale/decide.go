package scale

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Values are the present measures. A metric that could not be read is absent, and counts as unknown: it
// never reduces the number of replicas.
type Values map[string]float64

// State is what is stored between decisions.
type State struct {
	Wanted int
	// Calls are the numbers that were called for in the longer of the two windows, the oldest first. Equal numbers in a row are
	// one call at the time of the last one.
	Calls []Call
	// LastRequest is the time of the latest request, also of one that waits for a replica.
	LastRequest time.Time
}

// Call is a number that the measures called for at a time.
type Call struct {
	At       time.Time
	Replicas int
}

// Seen is what is known at the time of a decision.
type Seen struct {
	Now     time.Time
	Ready   int // replicas that measured
	Values  Values
	Waiting int // requests that wait because there is no replica
}

// Decision is a number of replicas and why.
type Decision struct {
	Next   State
	Why    string
	Metric string // that decided; "" if a bound, a schedule or a request did
	Value  float64
	Limit  float64
}

// Decide returns the number of replicas that a deployment wants now.
func Decide(r Rules, s State, seen Seen) Decision {
	d := Decision{Next: s, Why: "no rule calls for another number"}
	d.Next.Calls = slices.Clone(s.Calls)
	if seen.Waiting > 0 {
		d.Next.LastRequest = seen.Now
	}
	low, by := floor(r, s, seen)
	call := s.Wanted
	if len(r.Targets) > 0 && seen.Ready > 0 {
		call = d.measured(r, s, seen)
	}
	d.Next.Wanted = d.settle(r, s, clamp(call, max(r.Min, min(1, s.Wanted)), r.Max), seen.Now)
	switch {
	case d.Next.Wanted < low:
		d.take(low, by)
	case d.Next.Wanted > r.Max:
		d.take(r.Max, fmt.Sprintf("max is %d", r.Max))
	case low == 0 && r.Min == 0 && idle(r, d.Next, seen):
		d.take(0, fmt.Sprintf("no request for %s", r.ZeroAfter))
	}
	if d.Next.Wanted == s.Wanted {
		d.Metric, d.Value, d.Limit = "", 0, 0
		d.Why = "no rule calls for another number"
	}
	return d
}

func (d *Decision) take(n int, why string) {
	d.Next.Wanted, d.Why = n, why
	d.Metric, d.Value, d.Limit = "", 0, 0
}

// floor returns the smallest number now, and what sets it.
func floor(r Rules, s State, seen Seen) (int, string) {
	low, by := r.Min, fmt.Sprintf("min is %d", r.Min)
	for _, x := range r.Schedules {
		if x.Replicas > low && x.at(seen.Now) {
			low, by = x.Replicas, fmt.Sprintf("a schedule calls for %d", x.Replicas)
		}
	}
	if low == 0 && seen.Waiting > 0 {
		return 1, fmt.Sprintf("requests that wait for a replica: %d", seen.Waiting)
	}
	return low, by
}

// idle reports whether the deployment has had no request for long enough.
func idle(r Rules, s State, seen Seen) bool {
	return seen.Waiting == 0 && seen.Now.Sub(s.LastRequest) >= r.ZeroAfter
}

// measured returns the largest number that a target calls for.
func (d *Decision) measured(r Rules, s State, seen Seen) int {
	best, unknown := 0, false
	for _, t := range r.Targets {
		value, known := seen.Values[t.Metric]
		if !known || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
			unknown = true
			continue
		}
		n := t.replicas(value, seen.Ready, s.Wanted)
		if n > best || d.Metric == "" {
			best = max(best, n)
			d.Metric, d.Value, d.Limit = t.Metric, value, t.PerReplica
			d.Why = fmt.Sprintf("%s is %.4g, the target is %.4g%s", t.Metric, value, t.PerReplica, per(t))
		}
	}
	if unknown && best < s.Wanted {
		d.take(s.Wanted, "a metric is unknown, so the number is not reduced")
		return s.Wanted
	}
	return best
}

func per(t Target) string {
	if t.Sum {
		return " for each replica"
	}
	return ""
}

// replicas returns the number that a value calls for. Within the tolerance it is the present one.
func (t Target) replicas(value float64, ready, wanted int) int {
	ratio := value / t.PerReplica // of the needed to one replica
	if !t.Sum {
		ratio *= float64(ready)
	}
	if wanted > 0 && math.Abs(ratio/float64(wanted)-1) <= tolerance {
		return wanted
	}
	if ratio >= MaxReplicas {
		return MaxReplicas
	}
	return int(math.Ceil(ratio - 1e-9))
}

// settle applies the windows: up only to what was called for during all of UpAfter, down only to the most
// that was called for in DownAfter.
func (d *Decision) settle(r Rules, s State, call int, now time.Time) int {
	keep := max(r.UpAfter, r.DownAfter)
	if n := len(d.Next.Calls); n > 0 && d.Next.Calls[n-1].Replicas == call {
		d.Next.Calls[n-1].At = now // the end of a row of equal calls says enough
	} else {
		d.Next.Calls = append(d.Next.Calls, Call{now, call})
	}
	d.Next.Calls = slices.DeleteFunc(d.Next.Calls, func(c Call) bool { return now.Sub(c.At) > keep })
	least, most := call, call
	for _, c := range d.Next.Calls {
		if now.Sub(c.At) <= r.UpAfter {
			least = min(least, c.Replicas)
		}
		if now.Sub(c.At) <= r.DownAfter {
			most = max(most, c.Replicas)
		}
	}
	switch {
	case least > s.Wanted:
		return least
	case most < s.Wanted:
		return most
	}
	return s.Wanted
}

func clamp(n, low, high int) int { return min(max(n, low), high) }
