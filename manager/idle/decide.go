package idle

import (
	"strings"
	"time"

	"github.com/berthhq/berth/internal/report"
)

// Decide returns which rule would end a session first, given the previous report, or nil if no
// rule applies. Every session is warned before it ends: a late warning delays the end.
func Decide(rules []Rule, s *Subject, before *report.Idle, now time.Time) *report.Idle {
	var first *report.Idle
	for i := range rules {
		next := rules[i].next(s, before, now)
		if next != nil && (first == nil || next.EndsAt.Before(first.EndsAt) ||
			next.EndsAt.Equal(first.EndsAt) && strings.Compare(next.Checker, first.Checker) < 0) {
			first = next
		}
	}
	return first
}

func (r *Rule) next(s *Subject, before *report.Idle, now time.Time) *report.Idle {
	due, why, ok := r.Due(s, now)
	if !ok {
		return nil
	}
	next := &report.Idle{Checker: r.Name, Kind: string(r.Kind), EndsAt: due, Reason: why}
	same := before != nil && before.Checker == r.Name && before.Kind == string(r.Kind) && !before.WarnedAt.IsZero()
	if same && r.measures() {
		due = before.WarnedAt // the session has been idle since the warning
	}
	if now.Before(due.Add(-r.Warning)) {
		return next
	}
	// A warning for an earlier end, which use has since postponed, is no longer valid.
	next.WarnedAt = now
	if same && !before.WarnedAt.Before(due.Add(-r.Warning)) {
		next.WarnedAt = before.WarnedAt
	}
	next.EndsAt = later(due, next.WarnedAt.Add(r.Warning))
	return next
}

// over reports whether it is time to end the session.
func over(i *report.Idle, now time.Time) bool {
	return i != nil && !i.WarnedAt.IsZero() && !now.Before(i.EndsAt)
}

// differs reports whether a report differs from the previous one enough for a new version of the
// session. While use keeps postponing the end, a new version is written only at intervals.
func differs(before, now *report.Idle, at time.Time) bool {
	if before == nil || now == nil {
		return before != now
	}
	if before.Checker != now.Checker || before.Kind != now.Kind || !before.WarnedAt.Equal(now.WarnedAt) {
		return true
	}
	slack := min(max(now.EndsAt.Sub(at)/8, 5*time.Second), 10*time.Minute)
	return now.EndsAt.Sub(before.EndsAt).Abs() >= slack
}
