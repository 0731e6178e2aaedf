package deployment

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/deployment/expression"
	"github.com/berthhq/berth/manager/deployment/scale"
)

// Scaling is the number of replicas and what changes it, as it is stored. Times are in seconds.
type Scaling struct {
	Min, Max                      int
	ZeroAfter, UpAfter, DownAfter int
	Targets                       []Target
	Schedules                     []Schedule
}

// Target is a measure, and what one replica can take of it.
type Target struct {
	Metric     string
	PerReplica float64
	Sum        bool
}

// Schedule raises the minimum between two times of the day, HH:MM.
type Schedule struct {
	From, To string
	Days     []int
	TimeZone string
	Replicas int
}

// ofSession begins the names of metrics of sessions, such as session:cuda_util. They are averages over the containers and devices
// of the replicas.
const ofSession = "session:"

// ofExpression begins the name of a metric that is an expression of PromQL over the metrics of the engines.
const ofExpression = "promql:"

// The metrics of the gateways, which are sums. Others are those of the session or the engine.
const (
	metricRequests = "requests"
	metricWaiting  = "waiting"
	metricRate     = "requestRate"
	metricTokens   = "tokenRate"
)

func ours(metric string) bool {
	switch metric {
	case metricRequests, metricWaiting, metricRate, metricTokens:
		return true
	}
	return false
}

const (
	maxTargets   = 10
	maxSchedules = 20
	maxMetric    = 200 // bytes of a name
)

func alone() Scaling { return Scaling{Min: 1, Max: 1, ZeroAfter: 900, UpAfter: 30, DownAfter: 300} }

// with returns the scaling after a change.
func (s Scaling) with(in *DeploymentScalingInput) (Scaling, error) {
	if in == nil {
		return s, nil
	}
	set(&s.Min, in.Min)
	if in.Max == nil {
		s.Max = max(s.Max, s.Min)
	}
	set(&s.Max, in.Max)
	set(&s.ZeroAfter, in.ZeroAfter)
	set(&s.UpAfter, in.UpAfter)
	set(&s.DownAfter, in.DownAfter)
	if in.Targets != nil {
		s.Targets = make([]Target, len(in.Targets))
		for i, t := range in.Targets {
			s.Targets[i] = Target{t.Metric, t.PerReplica, ours(t.Metric)}
			set(&s.Targets[i].Sum, t.Sum)
		}
	}
	if in.Schedules != nil {
		s.Schedules = make([]Schedule, len(in.Schedules))
		for i, x := range in.Schedules {
			s.Schedules[i] = Schedule{x.From, x.To, x.Days, "UTC", x.Replicas}
			set(&s.Schedules[i].TimeZone, x.TimeZone)
		}
	}
	return s, s.check()
}

func (s Scaling) check() error {
	for _, x := range []struct {
		field          string
		value, low, up int
	}{
		{"zeroAfter", s.ZeroAfter, 10, maxWeek}, {"upAfter", s.UpAfter, 0, 3600}, {"downAfter", s.DownAfter, 0, maxWait},
		{"targets", len(s.Targets), 0, maxTargets}, {"schedules", len(s.Schedules), 0, maxSchedules},
	} {
		if err := within("scaling."+x.field, x.value, x.low, x.up); err != nil {
			return err
		}
	}
	for i, t := range s.Targets {
		if text, is := strings.CutPrefix(t.Metric, ofExpression); is {
			if _, err := expression.Parse(text); err != nil {
				return named(fmt.Sprintf("scaling.targets[%d].metric", i), err)
			}
			continue
		}
		if len(t.Metric) > maxMetric {
			return problem.Invalid("scaling.targets", "a metric has a name of more than %d bytes", maxMetric).WithLimit(fmt.Sprint(maxMetric))
		}
	}
	r, err := s.rules()
	if err != nil {
		return err
	}
	return named("scaling", r.Check())
}

func (s Scaling) rules() (scale.Rules, error) {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	r := scale.Rules{Min: s.Min, Max: s.Max, ZeroAfter: second(s.ZeroAfter), UpAfter: second(s.UpAfter), DownAfter: second(s.DownAfter)}
	for _, t := range s.Targets {
		r.Targets = append(r.Targets, scale.Target(t))
	}
	for i, x := range s.Schedules {
		at := fmt.Sprintf("scaling.schedules[%d]", i)
		zone, err := time.LoadLocation(x.TimeZone)
		if err != nil || x.TimeZone == "Local" || x.TimeZone == "" {
			return r, problem.Invalid(at+".timeZone", "%.100q is not a time zone such as Europe/Berlin", x.TimeZone)
		}
		out := scale.Schedule{Location: zone, Replicas: x.Replicas}
		for _, f := range []struct {
			field, text string
			into        *time.Duration
		}{{"from", x.From, &out.From}, {"to", x.To, &out.To}} {
			t, err := time.Parse("15:04", f.text)
			if err != nil {
				return r, problem.Invalid(at+"."+f.field, "%.100q is not a time such as 08:30", f.text)
			}
			*f.into = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
		}
		for _, d := range x.Days {
			if err := within(at+".days", d, 0, 6); err != nil {
				return r, err
			}
			out.Days = append(out.Days, time.Weekday(d))
		}
		r.Schedules = append(r.Schedules, out)
	}
	return r, nil
}
