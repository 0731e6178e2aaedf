package rollout

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var runs = flag.Int("rollout.runs", 2000, "random histories of TestInterleavings")

// sim is a deployment whose decisions are carried out in part, late and in any order, while people change
// it and replicas fail.
type sim struct {
	t        *testing.T
	rng      *rand.Rand
	now      time.Time
	s        State
	replicas []Replica
	n        int
	broken   map[int]bool // revisions that never become ready
	asked    int          // the newest revision that a person asked for
	good     int          // the newest revision that was current and is not broken
}

func newSim(t *testing.T, seed uint64) *sim {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := &sim{t: t, rng: rng, now: time.Unix(1e9, 0), broken: map[int]bool{}, asked: 1, good: 1}
	kinds := []Kind{Rolling, BlueGreen, Canary}
	m.s = State{
		Wanted: 1 + rng.IntN(6), Current: 1, Target: 1, Failures: map[int]Failures{},
		Strategy: Strategy{
			Kind: kinds[rng.IntN(3)], MaxSurge: rng.IntN(3), MaxUnavailable: rng.IntN(2), AutoPromote: rng.IntN(2) == 0,
			PromoteAfter: time.Second, Steps: []int{10, 50}, StepTime: time.Second, Deadline: 10 * time.Minute,
		},
	}
	if m.s.Strategy.MaxSurge+m.s.Strategy.MaxUnavailable == 0 {
		m.s.Strategy.MaxSurge = 1
	}
	if err := m.s.Strategy.Check(); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *sim) count(p Phase) (n int) {
	for _, r := range m.replicas {
		if r.Phase == p {
			n++
		}
	}
	return n
}

// plan makes a decision, checks it, and carries it out in part.
func (m *sim) plan(all bool) {
	d := Plan(m.s, m.replicas, m.now)
	m.check(d)
	if !all && m.rng.IntN(8) == 0 {
		return // the manager was killed before it stored the decision
	}
	if d.Change == RolledBack && !m.broken[m.s.Target] && m.s.Failures[m.s.Target].Count < maxFailures && m.s.Verdict != Bad &&
		m.now.Sub(m.s.Began) <= m.s.Strategy.Deadline {
		m.t.Fatalf("a revision without a fault was given up: %s", d.Why)
	}
	m.s = d.Next
	if d.Change == Completed {
		m.good = m.s.Current
	}
	done := func() bool { return all || m.rng.IntN(5) > 0 } // or it was killed before it acted
	for revision, n := range d.Start {
		for range n {
			if done() {
				m.n++
				m.replicas = append(m.replicas, Replica{ID: fmt.Sprint("r", m.n), Revision: revision, Phase: Starting, Since: m.now})
			}
		}
	}
	for _, id := range d.Stop {
		if done() {
			m.remove(id)
		}
	}
	for _, id := range d.Drain {
		if done() {
			m.set(id, Draining)
		}
	}
}

// check holds the invariants of every decision.
func (m *sim) check(d Decision) {
	ready := m.count(Ready)
	need := d.Next.Wanted - d.Next.Strategy.MaxUnavailable
	if len(d.Drain) > 0 && ready-len(d.Drain) < need {
		m.t.Fatalf("%d of %d ready replicas are drained, at least %d of %d wanted must remain: %+v", len(d.Drain), ready, need, d.Next.Wanted, d)
	}
	live, starts := ready+m.count(Starting), 0
	for _, n := range d.Start {
		starts += n
	}
	most := d.Next.Wanted + d.Next.Strategy.MaxSurge
	if d.Next.Strategy.Kind == BlueGreen && d.Next.Target != d.Next.Current {
		most = 2 * d.Next.Wanted
	}
	if starts > 0 && live+starts > most {
		m.t.Fatalf("%d replicas are started beside %d, at most %d may exist: %+v", starts, live, most, d)
	}
	sum := 0
	for _, w := range d.Weights {
		sum += w
	}
	if sum != 100 {
		m.t.Fatalf("weights %v", d.Weights)
	}
	if d.Next.Target != d.Next.Current && m.broken[d.Next.Target] && d.Weights[d.Next.Target] != 0 {
		m.t.Fatalf("requests go to revision %d, which was never ready: %v", d.Next.Target, d.Weights)
	}
	if d.Change == Completed && m.broken[d.Next.Current] {
		m.t.Fatalf("revision %d is current and was never ready", d.Next.Current)
	}
}

func (m *sim) set(id string, p Phase) {
	for i := range m.replicas {
		if r := &m.replicas[i]; r.ID == id && r.Phase != p {
			r.Phase, r.Since = p, m.now
		}
	}
}

func (m *sim) remove(id string) {
	for i := range m.replicas {
		if m.replicas[i].ID == id {
			m.replicas = append(m.replicas[:i], m.replicas[i+1:]...)
			return
		}
	}
}

// happen is something that the manager does not decide.
func (m *sim) happen(calm bool) {
	m.now = m.now.Add(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
	if len(m.replicas) > 0 {
		r := m.replicas[m.rng.IntN(len(m.replicas))]
		switch {
		case r.Phase == Starting && m.broken[r.Revision]:
			m.set(r.ID, Failed)
			f := m.s.Failures[r.Revision]
			m.s.Failures[r.Revision] = Failures{Count: f.Count + 1, Last: m.now, Why: "exit code 1"}
		case r.Phase == Starting:
			m.set(r.ID, Ready)
			delete(m.s.Failures, r.Revision)
		case r.Phase == Draining:
			m.remove(r.ID)
		case r.Phase == Ready && !calm && m.rng.IntN(20) == 0:
			m.set(r.ID, Failed) // its machine is gone
		}
	}
	if m.s.Target != m.s.Current && !m.broken[m.s.Target] && m.rng.IntN(4) == 0 {
		m.s.Verdict = Good
	}
	if calm {
		m.s.Promoted = m.s.Target != m.s.Current
		return
	}
	switch m.rng.IntN(25) {
	case 0:
		m.s.Wanted = m.rng.IntN(7)
	case 1: // another revision, also during a change
		m.asked++
		m.broken[m.asked] = m.rng.IntN(3) == 0
		m.s.Target, m.s.Began, m.s.StepBegan, m.s.Step, m.s.Verdict, m.s.Promoted = m.asked, m.now, m.now, 0, Unknown, false
	case 2:
		m.s.Promoted = m.s.Target != m.s.Current
	}
}

// settled reports whether all wanted replicas of the current revision are ready, and no others exist.
func (m *sim) settled() bool {
	for _, r := range m.replicas {
		if r.Revision != m.s.Current || r.Phase != Ready {
			return false
		}
	}
	return m.s.Target == m.s.Current && len(m.replicas) == m.s.Wanted
}

// TestInterleavings: no decision drains or starts too many replicas. After the last change or failure, the wanted
// replicas of a good revision remain.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*runs) {
		m := newSim(t, seed)
		for range 150 {
			if m.rng.IntN(2) == 0 {
				m.plan(false)
			} else {
				m.happen(false)
			}
		}
		m.s.Wanted = max(m.s.Wanted, 1)
		m.s.Began = m.now
		want := m.good
		if m.s.Verdict = Unknown; !m.broken[m.s.Target] {
			want = m.s.Target
		}
		for range 4000 {
			m.plan(true)
			m.happen(true)
			if m.settled() {
				break
			}
		}
		if !m.settled() || m.s.Current != want {
			t.Fatalf("seed %d does not settle: %+v, replicas %+v, want revision %d", seed, m.s, m.replicas, want)
		}
	}
}

func TestBadRevisionIsRolledBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	s := State{
		Wanted: 2, Current: 1, Target: 2, Began: now, Strategy: Strategy{Kind: Rolling, MaxSurge: 1, Deadline: time.Hour},
		Failures: map[int]Failures{2: {Count: maxFailures, Last: now, Why: "the image has no command"}},
	}
	d := Plan(s, []Replica{{ID: "a", Revision: 1, Phase: Ready}, {ID: "b", Revision: 1, Phase: Ready}, {ID: "c", Revision: 2, Phase: Failed}}, now)
	if d.Change != RolledBack || d.Next.Target != 1 || len(d.Drain) != 0 || len(d.Start) != 0 || d.Weights[1] != 100 {
		t.Errorf("%+v", d)
	}
	if want := "revision 2 failed 3 times: the image has no command"; d.Why != want {
		t.Errorf("why %q, want %q", d.Why, want)
	}
}

func TestFailedReplicaWaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for count, wait := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 7: 5 * time.Minute, 90: 5 * time.Minute} {
		s := State{Wanted: 1, Current: 1, Target: 1, Strategy: Strategy{MaxSurge: 1}, Failures: map[int]Failures{1: {Count: count, Last: now}}}
		if d := Plan(s, nil, now.Add(wait-1)); len(d.Start) != 0 {
			t.Errorf("after %d failures, a replica starts before %s", count, wait)
		}
		if d := Plan(s, nil, now.Add(wait)); d.Start[1] != 1 {
			t.Errorf("after %d failures, no replica starts after %s", count, wait)
		}
	}
}

func TestStrategiesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []Strategy{
		{Kind: "other", Deadline: 1}, {Kind: Rolling, Deadline: 1}, {Kind: Rolling, MaxSurge: -1, Deadline: 1}, {Kind: Rolling, MaxSurge: 1},
		{Kind: Canary, MaxSurge: 1, Deadline: 1}, {Kind: Canary, MaxSurge: 1, Deadline: 1, Steps: []int{50, 10}}, {Kind: Canary, MaxSurge: 1, Deadline: 1, Steps: []int{100}},
	} {
		if s.Check() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}

// A canary with too few requests is promoted at its deadline if its replicas are ready and no request has failed, and otherwise
// rolled back.
func TestCanaryWithFewRequests(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	ready := []Replica{{ID: "a", Revision: 1, Phase: Ready}, {ID: "b", Revision: 2, Phase: Ready}}
	for _, c := range []struct {
		name     string
		change   func(*State)
		replicas []Replica
		after    time.Duration
		want     Change
	}{
		{"before the deadline", func(*State) {}, ready, time.Hour, None},
		{"no request has failed", func(*State) {}, ready, time.Hour + 1, Stepped},
		{"a request has failed", func(s *State) { s.Erred = true }, ready, time.Hour + 1, RolledBack},
		{"no replica is ready", func(*State) {}, ready[:1], time.Hour + 1, RolledBack},
		{"worse", func(s *State) { s.Verdict = Bad }, ready, time.Hour + 1, RolledBack},
	} {
		s := State{
			Wanted: 2, Current: 1, Target: 2, Began: now, StepBegan: now,
			Strategy: Strategy{Kind: Canary, MaxSurge: 1, Steps: []int{10, 50}, StepTime: time.Minute, Deadline: time.Hour},
		}
		c.change(&s)
		d := Plan(s, c.replicas, now.Add(c.after))
		if d.Change != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, d.Change, d.Why, c.want)
		}
		if c.want != Stepped {
			continue
		}
		if d.Next.Step != 2 || d.Next.Target != 2 || !strings.Contains(d.Why, "too few requests") {
			t.Errorf("%s: %+v", c.name, d)
		}
		if next := Plan(d.Next, c.replicas, now.Add(c.after+time.Second)); next.Change == RolledBack {
			t.Errorf("%s: it is rolled back one second later: %s", c.name, next.Why)
		}
	}
}
