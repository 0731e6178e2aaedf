package scale

import (
	"fmt"
	"math"
	"time"

	"github.com/containerd/errdefs"
)

// Rules are the rules of a deployment.
type Rules struct {
	// Min and Max bound the number of replicas. With Min = 0, the deployment has none after ZeroAfter
	// without a request.
	Min, Max  int
	ZeroAfter time.Duration
	// Targets are the measures that count. Without one, the number stays what a person set.
	Targets []Target
	// UpAfter and DownAfter are the times for which a number must be called for before it is taken: the
	// smallest one called for in UpAfter, the largest one in DownAfter.
	UpAfter, DownAfter time.Duration
	// Schedules raise Min at times of the day.
	Schedules []Schedule
}

// Target is a measure and what one replica can take of it.
type Target struct {
	Metric string
	// PerReplica is the amount for one replica if Sum; otherwise it is the value to keep, such as 0.8 of
	// a KV cache.
	PerReplica float64
	// Sum says that the metric is a total over all replicas, such as requests in flight.
	Sum bool
}

// Schedule raises Min to Replicas between two times of the day, on some days of the week.
type Schedule struct {
	From, To time.Duration // since midnight; the schedule ends on the next day if To is before From
	Days     []time.Weekday
	Location *time.Location
	Replicas int
}

const (
	// MaxReplicas limits the replicas of a deployment.
	MaxReplicas = 1000
	// tolerance is the relative difference from a target that changes nothing.
	tolerance = 0.1
	day       = 24 * time.Hour
)

// Check returns an error that names the field and the limit.
func (r Rules) Check() error {
	switch {
	case r.Min < 0 || r.Max < 1 || r.Min > r.Max || r.Max > MaxReplicas:
		return invalid("min is between 0 and max, and max between 1 and %d: min %d, max %d", MaxReplicas, r.Min, r.Max)
	case r.Min == 0 && r.ZeroAfter <= 0:
		return invalid("zeroAfter is above 0 if min is 0")
	case r.UpAfter < 0 || r.DownAfter < 0 || r.UpAfter > time.Hour || r.DownAfter > day:
		return invalid("upAfter is between 0 and 1h, downAfter between 0 and 24h")
	}
	seen := map[string]bool{}
	for _, t := range r.Targets {
		if t.Metric == "" || seen[t.Metric] {
			return invalid("targets: metric %q is empty or named twice", t.Metric)
		}
		seen[t.Metric] = true
		if !(t.PerReplica > 0) || math.IsInf(t.PerReplica, 0) {
			return invalid("targets: perReplica of %s is above 0", t.Metric)
		}
	}
	for i, s := range r.Schedules {
		if s.From < 0 || s.From >= day || s.To < 0 || s.To >= day || s.From == s.To || s.Location == nil {
			return invalid("schedules: %d: from and to are different times of the day, with a time zone", i+1)
		}
		if s.Replicas < 1 || s.Replicas > r.Max {
			return invalid("schedules: %d: replicas is between 1 and max = %d", i+1, r.Max)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("scaling: "+format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

// at reports whether a schedule raises the minimum at a time.
func (s Schedule) at(now time.Time) bool {
	local := now.In(s.Location)
	since := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute + time.Duration(local.Second())*time.Second
	today := local.Weekday()
	if s.From < s.To {
		return s.on(today) && since >= s.From && since < s.To
	}
	yesterday := (today + 6) % 7
	return s.on(today) && since >= s.From || s.on(yesterday) && since < s.To
}

func (s Schedule) on(d time.Weekday) bool {
	for _, w := range s.Days {
		if w == d {
			return true
		}
	}
	return len(s.Days) == 0
}
