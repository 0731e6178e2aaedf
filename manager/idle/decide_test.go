package idle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/ent/idlechecker"
	"github.com/berthhq/berth/internal/report"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time {
	return start.Add(time.Duration(minutes * float64(time.Minute)))
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// steady returns a constant level for every series.
func steady(levels map[string]float64) func(string, time.Duration) (Level, bool) {
	return func(series string, _ time.Duration) (Level, bool) {
		v, ok := levels[series]
		return Level{Mean: v, Peak: v}, ok
	}
}

func TestDecide(t *testing.T) {
	interactive := []string{"interactive"}
	life := Rule{Name: "life", Kind: idlechecker.KindLifetime, Timeout: minutes(60), Warning: minutes(5), Types: interactive}
	net := Rule{Name: "net", Kind: idlechecker.KindNetwork, Timeout: minutes(30), Warning: minutes(5), Types: interactive}
	ignoring := Rule{Name: "ignoring", Kind: idlechecker.KindNetwork, Timeout: minutes(30), Warning: minutes(5), Types: interactive, Ignored: []string{"6006", "tensorboard"}}
	gpu := Rule{Name: "gpu", Kind: idlechecker.KindUtilization, Timeout: minutes(30), Warning: minutes(5), Types: interactive,
		Thresholds: map[string]float64{"cpu": 10, "cuda": 5}}
	either := gpu
	either.Name, either.Any = "either", true
	mem := Rule{Name: "mem", Kind: idlechecker.KindMemory, Timeout: minutes(30), Warning: minutes(5), Types: interactive, Thresholds: map[string]float64{"cuda": 5}}
	with := func(r Rule, change func(*Rule)) Rule { change(&r); return r }
	holding := func(levels map[string]float64) Subject {
		return Subject{Type: "interactive", Started: start, Kinds: []string{"cpu", "mem", "cuda"}, Over: steady(levels)}
	}
	plain := holding(nil)
	was := func(name, kind string, ends, warned time.Time) *report.Idle {
		return &report.Idle{Checker: name, Kind: kind, EndsAt: ends, WarnedAt: warned}
	}
	for _, c := range []struct {
		name   string
		rules  []Rule
		on     Subject
		before *report.Idle
		now    time.Time
		want   *report.Idle // expected report without the reason
	}{
		{"nothing binds", nil, plain, nil, at(600), nil},
		{"lifetime from the start", []Rule{life}, plain, nil, at(1), was("life", "lifetime", at(60), time.Time{})},
		{"warned in time", []Rule{life}, plain, was("life", "lifetime", at(60), time.Time{}), at(55), was("life", "lifetime", at(60), at(55))},
		{"a late warning moves the end", []Rule{life}, plain, nil, at(100), was("life", "lifetime", at(105), at(100))},
		{"a warning is given once", []Rule{life}, plain, was("life", "lifetime", at(60), at(55)), at(58), was("life", "lifetime", at(60), at(55))},
		{"the end that was warned of stays", []Rule{life}, plain, was("life", "lifetime", at(105), at(100)), at(104), was("life", "lifetime", at(105), at(100))},
		{"a session of another type", []Rule{life}, Subject{Type: "batch", Started: start}, nil, at(100), nil},
		{"network: never used is used at the start", []Rule{net}, plain, nil, at(1), was("net", "network", at(30), time.Time{})},
		{"network: use postpones the end", []Rule{net}, changed(plain, func(s *Subject) { s.Used = map[string]time.Time{"": at(20)} }), nil, at(21), was("net", "network", at(50), time.Time{})},
		{"network: use of an app postpones the end", []Rule{net}, changed(plain, func(s *Subject) { s.Used = map[string]time.Time{"": at(2), "jupyter": at(20)} }), nil, at(21), was("net", "network", at(50), time.Time{})},
		{"network: use of an ignored app does not postpone it", []Rule{ignoring}, changed(plain, func(s *Subject) {
			s.Used = map[string]time.Time{"": at(2), "jupyter": at(5), "tensorboard": at(20), "6006": at(21)}
		}), nil, at(21), was("ignoring", "network", at(35), time.Time{})},
		{"network: use after the warning cancels it", []Rule{net}, changed(plain, func(s *Subject) { s.Used = map[string]time.Time{"": at(27)} }), was("net", "network", at(30), at(25)), at(28), was("net", "network", at(57), time.Time{})},
		{"network: an old warning does not count for a new end", []Rule{net}, changed(plain, func(s *Subject) { s.Used = map[string]time.Time{"": at(27)} }), was("net", "network", at(30), at(25)), at(56), was("net", "network", at(61), at(56))},
		{"the earliest of two", []Rule{life, net}, plain, nil, at(1), was("net", "network", at(30), time.Time{})},
		{"grace of a new session", []Rule{with(net, func(r *Rule) { r.Grace = minutes(90) })}, plain, nil, at(1), was("net", "network", at(90), time.Time{})},
		{"grace of a new user", []Rule{with(net, func(r *Rule) { r.NewUserGrace = minutes(90) })}, changed(plain, func(s *Subject) { s.Joined = at(-10) }), nil, at(1), was("net", "network", at(80), time.Time{})},
		{"both below", []Rule{gpu}, holding(map[string]float64{"cpu": 10, "cuda": 5}), nil, at(40), was("gpu", "utilization", at(45), at(40))},
		{"idle before and still idle", []Rule{gpu}, holding(map[string]float64{"cpu": 1, "cuda": 1}), was("gpu", "utilization", at(45), at(40)), at(44), was("gpu", "utilization", at(45), at(40))},
		{"one above, of all", []Rule{gpu}, holding(map[string]float64{"cpu": 11, "cuda": 0}), was("gpu", "utilization", at(45), at(40)), at(44), nil},
		{"one above, of any", []Rule{either}, holding(map[string]float64{"cpu": 11, "cuda": 0}), nil, at(40), was("either", "utilization", at(45), at(40))},
		{"one not measured, of all", []Rule{gpu}, holding(map[string]float64{"cpu": 0}), nil, at(40), nil},
		{"one not measured, of any", []Rule{either}, holding(map[string]float64{"cpu": 0}), nil, at(40), was("either", "utilization", at(45), at(40))},
		{"not measured at all", []Rule{gpu, either, mem}, holding(nil), nil, at(40), nil},
		{"a slot that the session lacks", []Rule{gpu}, changed(holding(map[string]float64{"cpu": 0}), func(s *Subject) { s.Kinds = []string{"cpu", "mem"} }), nil, at(40), was("gpu", "utilization", at(45), at(40))},
		{"only slots that the session lacks", []Rule{mem}, changed(holding(map[string]float64{"cuda.mem": 0}), func(s *Subject) { s.Kinds = []string{"cpu", "mem"} }), nil, at(40), nil},
		{"memory in use", []Rule{mem}, holding(map[string]float64{"cuda.mem": 6, "cuda": 0}), nil, at(40), nil},
		{"memory not in use", []Rule{mem}, holding(map[string]float64{"cuda.mem": 5, "cuda": 90}), nil, at(40), was("mem", "memory", at(45), at(40))},
		{"idle during its grace", []Rule{with(mem, func(r *Rule) { r.Grace = minutes(50) })}, holding(map[string]float64{"cuda.mem": 0}), nil, at(40), nil},
		{"no warning, no delay", []Rule{with(mem, func(r *Rule) { r.Warning = 0 })}, holding(map[string]float64{"cuda.mem": 0}), nil, at(40), was("mem", "memory", at(40), at(40))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.rules, &c.on, c.before, c.now)
			if got != nil {
				if got.Reason == "" {
					t.Error("no reason")
				}
				got.Reason = ""
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func changed(s Subject, change func(*Subject)) Subject { change(&s); return s }

// TestNoSessionEndsEarly simulates random days with random rules. A session ends only when a rule's
// timeout is over, after a warning that is as old as the rule requires, and it ends soon after
// that.
func TestNoSessionEndsEarly(t *testing.T) {
	ended := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 8))
		var rules []Rule
		for i := range 1 + r.IntN(3) {
			rule := Rule{Name: string(rune('a' + i)), Kind: idlechecker.KindLifetime, Types: []string{"interactive"}, Timeout: minutes(1 + r.IntN(120))}
			if r.IntN(3) > 0 {
				rule.Kind = idlechecker.KindNetwork
			}
			rule.Warning = time.Duration(r.Int64N(int64(rule.Timeout) + 1)).Truncate(time.Second)
			rule.Grace = minutes(r.IntN(2) * r.IntN(90))
			rules = append(rules, rule)
		}
		s := Subject{Type: "interactive", Started: start}
		var idle *report.Idle
		now := start
		for now.Before(at(24 * 60)) {
			now = now.Add(time.Duration(1+r.IntN(20)) * time.Second)
			if r.IntN(100) == 0 {
				now = now.Add(minutes(r.IntN(60))) // no check runs
			}
			if r.IntN(200) == 0 {
				s.Used = map[string]time.Time{"": now}
			}
			before := idle
			idle = Decide(rules, &s, before, now)
			if !over(idle, now) {
				continue
			}
			ended++
			var by *Rule
			for i := range rules {
				if rules[i].Name == idle.Checker {
					by = &rules[i]
				}
			}
			due := s.Started.Add(by.Timeout)
			if by.Kind == idlechecker.KindNetwork {
				due = later(s.newest(), s.Started).Add(by.Timeout)
			}
			due = later(due, s.Started.Add(by.Grace))
			if now.Before(due) {
				t.Fatalf("seed %d: %s ends the session at %s, due at %s", seed, by.Name, now, due)
			}
			if by.Warning > 0 && (before == nil || before.Checker != by.Name || now.Sub(before.WarnedAt) < by.Warning || before.WarnedAt.Before(due.Add(-by.Warning))) {
				t.Fatalf("seed %d: %s ends the session at %s, due at %s, warned before: %+v", seed, by.Name, now, due, before)
			}
			break
		}
		for i := range rules { // a session that was unused for longer than every rule allows must have ended
			due, _, _ := rules[i].Due(&s, now)
			if !over(idle, now) && now.Sub(later(due, start)) > 3*time.Hour+2*rules[i].Warning {
				t.Fatalf("seed %d: %s was due at %s and is not over at %s: %+v", seed, rules[i].Name, due, now, idle)
			}
		}
	}
	if ended < 2000 {
		t.Errorf("only %d of 3000 ended", ended)
	}
}

func TestNews(t *testing.T) {
	idle := func(checker string, ends, warned time.Time) *report.Idle {
		return &report.Idle{Checker: checker, Kind: "network", EndsAt: ends, WarnedAt: warned}
	}
	for _, c := range []struct {
		name        string
		before, now *report.Idle
		want        bool
	}{
		{"still nothing", nil, nil, false},
		{"new", nil, idle("a", at(60), time.Time{}), true},
		{"gone", idle("a", at(60), time.Time{}), nil, true},
		{"by another", idle("a", at(60), time.Time{}), idle("b", at(60), time.Time{}), true},
		{"warned", idle("a", at(60), time.Time{}), idle("a", at(60), at(55)), true},
		{"an hour ahead and a minute later", idle("a", at(60), time.Time{}), idle("a", at(61), time.Time{}), false},
		{"an hour ahead and ten minutes later", idle("a", at(60), time.Time{}), idle("a", at(70), time.Time{}), true},
		{"a minute ahead and ten seconds sooner", idle("a", at(1.2), time.Time{}), idle("a", at(1), time.Time{}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := differs(c.before, c.now, start); got != c.want {
				t.Errorf("news %v", got)
			}
		})
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", 90 * time.Second: "1 min 30 s", time.Hour: "1 h",
		time.Hour + time.Second: "1 h", 25 * time.Hour: "1 d 1 h", 49*time.Hour + 5*time.Minute: "2 d 1 h",
	} {
		if got := Span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
