package scale

import (
	"math"
	"strings"
	"testing"
	"time"
)

const tick = 5 * time.Second

// load drives a deployment: each replica takes 10 requests at a time, and starts in one tick.
type load struct {
	r     Rules
	s     State
	now   time.Time
	ready int
	turns int // changes of the direction
	last  int // 1 = up, -1 = down
}

func newLoad(r Rules, wanted int) *load {
	now := time.Unix(1e9, 0)
	return &load{r: r, s: State{Wanted: wanted, LastRequest: now}, now: now, ready: wanted}
}

func (l *load) step(inFlight float64) Decision {
	if inFlight > 0 {
		l.s.LastRequest = l.now
	}
	seen := Seen{Now: l.now, Ready: l.ready, Values: Values{"in-flight": inFlight}}
	if l.ready == 0 {
		seen.Waiting, seen.Values = int(inFlight), nil
	}
	d := Decide(l.r, l.s, seen)
	if way := sign(d.Next.Wanted - l.s.Wanted); way != 0 {
		if l.last != 0 && way != l.last {
			l.turns++
		}
		l.last = way
	}
	l.s, l.ready = d.Next, d.Next.Wanted
	l.now = l.now.Add(tick)
	return d
}

func sign(n int) int {
	switch {
	case n > 0:
		return 1
	case n < 0:
		return -1
	}
	return 0
}

func rules() Rules {
	return Rules{Min: 1, Max: 20, Targets: []Target{{Metric: "in-flight", PerReplica: 10, Sum: true}}, DownAfter: 5 * time.Minute}
}

func TestStepIsReachedInTwoTicks(t *testing.T) {
	t.Parallel()
	l := newLoad(rules(), 1)
	l.step(5)
	d := l.step(120)
	if d.Next.Wanted != 12 {
		l.step(120)
	}
	if l.s.Wanted != 12 {
		t.Fatalf("wanted %d after 2 ticks, want 12", l.s.Wanted)
	}
	if want := "in-flight is 120, the target is 10 for each replica"; d.Why != want || d.Metric != "in-flight" || d.Value != 120 || d.Limit != 10 {
		t.Errorf("the decision says %+v", d)
	}
	for range int(5*time.Minute/tick) - 1 {
		if l.step(20); l.s.Wanted != 12 {
			t.Fatalf("reduced to %d within %s", l.s.Wanted, rules().DownAfter)
		}
	}
	for range 4 {
		l.step(20)
	}
	if l.s.Wanted != 2 {
		t.Errorf("wanted %d after the window, want 2", l.s.Wanted)
	}
}

// A load that swings makes at most as many changes of the direction as there are windows of 5 minutes.
func TestSineDoesNotFlap(t *testing.T) {
	t.Parallel()
	for _, period := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour} {
		l := newLoad(rules(), 5)
		const all = 3 * time.Hour
		for i := range int(all / tick) {
			l.step(60 + 40*math.Sin(2*math.Pi*float64(i)*float64(tick)/float64(period)))
		}
		if most := int(all / (5 * time.Minute)); l.turns > most {
			t.Errorf("period %s: %d changes of the direction, at most %d in %s", period, l.turns, most, all)
		}
	}
}

func TestToleranceKeepsTheNumber(t *testing.T) {
	t.Parallel()
	l := newLoad(rules(), 10)
	for _, v := range []float64{95, 108, 100, 91} {
		if d := l.step(v); d.Next.Wanted != 10 || d.Why != "no rule calls for another number" || d.Metric != "" {
			t.Errorf("%v in flight: %+v", v, d)
		}
	}
}

func TestZeroAndBack(t *testing.T) {
	t.Parallel()
	r := rules()
	r.Min, r.ZeroAfter, r.DownAfter = 0, time.Minute, 0
	l := newLoad(r, 1)
	l.step(1)
	var d Decision
	for range int(time.Minute / tick) {
		d = l.step(0)
	}
	if l.s.Wanted != 0 || d.Why != "no request for 1m0s" {
		t.Fatalf("wanted %d (%s) after a minute without a request", l.s.Wanted, d.Why)
	}
	if d = l.step(0); d.Next.Wanted != 0 {
		t.Errorf("a deployment without requests starts a replica: %+v", d)
	}
	if d = l.step(3); d.Next.Wanted != 1 || d.Why != "requests that wait for a replica: 3" {
		t.Errorf("requests that wait: %+v", d)
	}
	if d = l.step(3); d.Next.Wanted != 1 {
		t.Errorf("the replica ends while it has requests: %+v", d)
	}
}

// A metric that is not known never reduces the number.
func TestUnknownIsNotZero(t *testing.T) {
	t.Parallel()
	r := rules()
	r.Targets = append(r.Targets, Target{Metric: "kv-cache", PerReplica: 0.8})
	r.DownAfter = 0
	for _, values := range []Values{{}, {"in-flight": 1}, {"in-flight": 1, "kv-cache": math.NaN()}, {"kv-cache": 0.1}} {
		d := Decide(r, State{Wanted: 6}, Seen{Now: time.Unix(1e9, 0), Ready: 6, Values: values})
		if d.Next.Wanted != 6 {
			t.Errorf("values %v: wanted %d, want 6", values, d.Next.Wanted)
		}
	}
	d := Decide(r, State{Wanted: 6}, Seen{Now: time.Unix(1e9, 0), Ready: 6, Values: Values{"kv-cache": 1}})
	if d.Next.Wanted != 8 || !strings.Contains(d.Why, "kv-cache is 1") {
		t.Errorf("a full cache: %+v", d)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones on this machine")
	}
	night := Schedule{From: 22 * time.Hour, To: 6 * time.Hour, Days: []time.Weekday{time.Friday}, Location: berlin, Replicas: 4}
	for at, want := range map[string]bool{
		"2026-11-27T21:59:59+01:00": false, "2026-11-27T22:00:00+01:00": true, "2026-11-28T05:59:59+01:00": true,
		"2026-11-28T06:00:00+01:00": false, "2026-11-28T23:00:00+01:00": false, "2026-11-27T05:00:00+01:00": false,
	} {
		now, _ := time.Parse(time.RFC3339, at)
		if night.at(now) != want {
			t.Errorf("%s: %t, want %t", at, !want, want)
		}
	}
	r := rules()
	r.Schedules = []Schedule{night}
	now, _ := time.Parse(time.RFC3339, "2026-11-27T23:00:00+01:00")
	d := Decide(r, State{Wanted: 1}, Seen{Now: now, Ready: 1, Values: Values{"in-flight": 1}})
	if d.Next.Wanted != 4 || d.Why != "a schedule calls for 4" {
		t.Errorf("%+v", d)
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Rules{
		"max below min": {Min: 2, Max: 1}, "no max": {}, "too many": {Min: 1, Max: MaxReplicas + 1}, "zero without a time": {Max: 1},
		"twice":        {Min: 1, Max: 2, Targets: []Target{{Metric: "a", PerReplica: 1}, {Metric: "a", PerReplica: 1}}},
		"not a number": {Min: 1, Max: 2, Targets: []Target{{Metric: "a", PerReplica: math.NaN()}}},
		"long window":  {Min: 1, Max: 2, DownAfter: 25 * time.Hour},
		"schedule":     {Min: 1, Max: 2, Schedules: []Schedule{{From: 0, To: time.Hour, Replicas: 3, Location: time.UTC}}},
	} {
		if r.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := rules().Check(); err != nil {
		t.Error(err)
	}
}
