package load

import (
	"math"
	"time"
)

// buckets is the number of counts of a Histogram. A bucket ends at 1 ms × growth^(index+1); the last one has no end.
const buckets = 48

// growth makes a quantile wrong by at most 30 %, from 1 ms to 5 minutes.
const growth = 1.3

// Histogram counts durations. Its zero value is empty.
type Histogram []int

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	if *h == nil {
		*h = make(Histogram, buckets)
	}
	i := int(math.Log(max(1, float64(d)/float64(time.Millisecond))) / math.Log(growth))
	(*h)[min(i, buckets-1)]++
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other Histogram) {
	if len(other) != buckets {
		return
	}
	if *h == nil {
		*h = make(Histogram, buckets)
	}
	for i, n := range other {
		(*h)[i] += n
	}
}

// Quantile returns the duration that a share q of the counted ones does not exceed; false without any.
func (h Histogram) Quantile(q float64) (time.Duration, bool) {
	all := 0
	for _, n := range h {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	rank, seen := int(math.Ceil(q*float64(all))), 0
	for i, n := range h {
		if seen += n; seen >= max(rank, 1) {
			return time.Duration(math.Pow(growth, float64(i+1)) * float64(time.Millisecond)), true
		}
	}
	return 0, false
}
