package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// maxFailures is the number of failures of a new revision after which it is given up.
	maxFailures = 3
	// firstRetry is the time after a failure in which no replica of the revision is started. It doubles
	// up to maxRetry.
	firstRetry = 5 * time.Second
	maxRetry   = 5 * time.Minute
)

// Plan decides what happens next.
func Plan(s State, replicas []Replica, now time.Time) Decision {
	d := Decision{Start: map[int]int{}, Next: s}
	d.judge(replicas, now)
	d.advance(replicas, now)
	f := newFleet(replicas)
	for _, r := range f.of(Failed) {
		d.Stop = append(d.Stop, r.ID)
	}
	wants := d.wants()
	d.start(f, wants, now)
	d.end(f, wants)
	d.Weights = d.weights(f)
	return d
}

// judge gives up a target that does not work.
func (d *Decision) judge(replicas []Replica, now time.Time) {
	s := &d.Next
	if s.Target == s.Current {
		return
	}
	if s.Wanted == 0 { // the target can only prove itself when replicas are wanted
		s.Began, s.StepBegan = now, now
	}
	bad := s.Failures[s.Target]
	switch {
	case bad.Count >= maxFailures:
		d.Why = fmt.Sprintf("revision %d failed %d times: %s", s.Target, bad.Count, bad.Why)
	case s.Strategy.Kind == Canary && s.Verdict == Bad:
		d.Why = fmt.Sprintf("revision %d answers worse than revision %d", s.Target, s.Current)
	case now.Sub(s.Began) > s.Strategy.Deadline && d.unjudged(replicas):
		s.Promoted, s.Began = true, now
		d.Why = fmt.Sprintf("too few requests to judge revision %d within %s, and none of them has failed", s.Target, s.Strategy.Deadline)
		return
	case now.Sub(s.Began) > s.Strategy.Deadline && !awaitsPerson(*s, replicas):
		d.Why = fmt.Sprintf("revision %d was not ready everywhere within %s", s.Target, s.Strategy.Deadline)
	default:
		return
	}
	d.Change = RolledBack
	s.settle(s.Current)
}

// unjudged reports whether a canary works as far as its few requests say.
func (d *Decision) unjudged(replicas []Replica) bool {
	s := d.Next
	return s.Strategy.Kind == Canary && s.Step < len(s.Strategy.Steps) && s.Verdict == Unknown && !s.Erred &&
		newFleet(replicas).count(s.Target, Ready) >= d.wants()[s.Target]
}

// awaitsPerson reports whether a change is complete but for the promotion.
func awaitsPerson(s State, replicas []Replica) bool {
	return s.Strategy.Kind == BlueGreen && !s.Strategy.AutoPromote && newFleet(replicas).count(s.Target, Ready) >= s.Wanted
}

// settle ends the change with a revision.
func (s *State) settle(revision int) {
	s.Current, s.Target = revision, revision
	s.Promoted, s.Step, s.Verdict, s.Erred = false, 0, Unknown, false
}

// advance ends a change or its step if what it needs is there.
func (d *Decision) advance(replicas []Replica, now time.Time) {
	s := &d.Next
	if s.Target == s.Current || s.Wanted == 0 {
		return
	}
	f := newFleet(replicas)
	switch s.Strategy.Kind {
	case Canary:
		if s.Step < len(s.Strategy.Steps) {
			if s.Promoted {
				s.Step, d.Change = len(s.Strategy.Steps), Stepped
			} else if s.Verdict == Good && now.Sub(s.StepBegan) >= s.Strategy.StepTime {
				s.Step, s.StepBegan, s.Verdict, s.Erred = s.Step+1, now, Unknown, false
				d.Change = Stepped
			}
			return
		}
	case BlueGreen:
		if f.count(s.Target, Ready) < s.Wanted || !s.Promoted && !(s.Strategy.AutoPromote && f.youngest(s.Target, now) >= s.Strategy.PromoteAfter) {
			return
		}
		d.complete()
		return
	}
	if f.count(s.Target, Ready) >= s.Wanted && f.live() == f.liveOf(s.Target) {
		d.complete()
	}
}

func (d *Decision) complete() {
	d.Next.settle(d.Next.Target)
	d.Change = Completed
}

// wants returns the number of replicas of each revision; those of others end.
func (d *Decision) wants() map[int]int {
	s := d.Next
	switch {
	case s.Target == s.Current:
		return map[int]int{s.Current: s.Wanted}
	case s.Strategy.Kind == BlueGreen:
		return map[int]int{s.Current: s.Wanted, s.Target: s.Wanted}
	case s.Strategy.Kind == Canary && s.Step < len(s.Strategy.Steps):
		n := min((s.Wanted*s.Strategy.Steps[s.Step]+99)/100, s.Wanted)
		return map[int]int{s.Target: n, s.Current: s.Wanted - n}
	}
	return map[int]int{s.Target: s.Wanted}
}

// most returns the number of replicas that may exist at a time, without draining and failed ones.
func (d *Decision) most() int {
	s := d.Next
	if s.Target != s.Current && s.Strategy.Kind == BlueGreen {
		return 2 * s.Wanted
	}
	return s.Wanted + max(s.Strategy.MaxSurge, 0)
}

// start starts what is missing, the target first, as far as there is room and no failure is too fresh.
func (d *Decision) start(f fleet, wants map[int]int, now time.Time) {
	room := d.most() - f.live()
	for _, revision := range d.order(wants) {
		n := min(wants[revision]-f.liveOf(revision), room)
		if n <= 0 || now.Before(retryAt(d.Next.Failures[revision])) {
			continue
		}
		d.Start[revision] = n
		room -= n
	}
}

// order returns the revisions that are wanted, the target first.
func (d *Decision) order(wants map[int]int) []int {
	out := make([]int, 0, len(wants))
	for revision := range wants {
		out = append(out, revision)
	}
	slices.SortFunc(out, func(a, b int) int {
		if a == d.Next.Target || b == d.Next.Target {
			return cmp.Compare(b2i(b == d.Next.Target), b2i(a == d.Next.Target))
		}
		return cmp.Compare(b, a)
	})
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// retryAt is when a replica of a revision can start after failures.
func retryAt(f Failures) time.Time {
	if f.Count == 0 {
		return time.Time{}
	}
	wait := maxRetry
	if n := f.Count - 1; n < 6 {
		wait = min(firstRetry<<n, maxRetry)
	}
	return f.Last.Add(wait)
}

// end ends what is too many: replicas that are not ready at once, others as long as enough remain.
func (d *Decision) end(f fleet, wants map[int]int) {
	spare := len(f.of(Ready)) - max(d.Next.Wanted-d.Next.Strategy.MaxUnavailable, 0)
	if d.Next.Target == d.Next.Current && f.live() == f.liveOf(d.Next.Current) { // nothing is replaced, so nothing may be missing
		spare = len(f.of(Ready)) - d.Next.Wanted
	}
	for _, revision := range f.revisions() {
		over := f.liveOf(revision) - wants[revision]
		for _, r := range f.only(revision, Starting) {
			if over > 0 {
				d.Stop = append(d.Stop, r.ID)
				over--
			}
		}
		for _, r := range f.only(revision, Ready) {
			if over > 0 && spare > 0 {
				d.Drain = append(d.Drain, r.ID)
				over--
				spare--
			}
		}
	}
}

// weights returns the shares of the revisions that have ready replicas.
func (d *Decision) weights(f fleet) map[int]int {
	s := d.Next
	old, target := f.count(s.Current, Ready), f.count(s.Target, Ready)
	out := map[int]int{}
	switch {
	case s.Target == s.Current || target == 0:
		out[s.Current] = 100
	case old == 0:
		out[s.Target] = 100
	case s.Strategy.Kind == BlueGreen:
		out[s.Current] = 100
	case s.Strategy.Kind == Canary && s.Step < len(s.Strategy.Steps):
		out[s.Target], out[s.Current] = s.Strategy.Steps[s.Step], 100-s.Strategy.Steps[s.Step]
	default:
		out[s.Target] = 100 * target / (old + target)
		out[s.Current] = 100 - out[s.Target]
	}
	return out
}
