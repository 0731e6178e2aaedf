package idle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/ent/idlechecker"
)

// Rule is what a checker, or the idle timeout of a policy, asks of a session.
type Rule struct {
	Name         string // of anyone who says so, as people read it
	Kind         idlechecker.Kind
	Timeout      time.Duration // of life, without traffic, or the window that is looked at
	Grace        time.Duration // that a new session is left alone
	NewUserGrace time.Duration // that the sessions of a new user are left alone
	Warning      time.Duration // between the warning and the end
	Any          bool          // one of the thresholds is enough
	Thresholds   map[string]float64
	Types        []string // of sessions
}

// Subject is a running session as rules see it.
type Subject struct {
	Type    string
	Started time.Time
	Joined  time.Time // when its owner became a user
	Used    time.Time // when someone last came, stayed or sent something, as far as is known
	Kinds   []string  // of the slots that it has
	// Over measures a series over the span that ends now; false: not known well enough.
	Over func(series string, span time.Duration) (Level, bool)
}

// Level is how much of something was used over a span, in percent of what there is.
type Level struct{ Mean, Peak float64 }

// Due tells when the rule ends the session, warnings aside, and why. False: it
// does not, as far as can be told now.
func (r *Rule) Due(s *Subject, now time.Time) (at time.Time, why string, ok bool) {
	if !slices.Contains(r.Types, s.Type) {
		return time.Time{}, "", false
	}
	switch r.Kind {
	case idlechecker.KindLifetime:
		at, why = s.Started.Add(r.Timeout), "runs since "+clockTime(s.Started)+"; it may for "+Span(r.Timeout)
	case idlechecker.KindNetwork:
		used := later(s.Used, s.Started)
		at, why = used.Add(r.Timeout), "no open terminal and no traffic since "+clockTime(used)+"; that may last for "+Span(r.Timeout)
	default:
		if why, ok = r.unused(s); !ok {
			return time.Time{}, "", false
		}
		at = now
	}
	left := later(s.Started.Add(r.Grace), s.Joined.Add(r.NewUserGrace)) // alone until then
	if r.measures() && left.After(now) {
		return time.Time{}, "", false
	}
	return later(at, left), why, true
}

// measures reports whether the rule goes by what is measured, and not by the clock.
func (r *Rule) measures() bool {
	return r.Kind == idlechecker.KindUtilization || r.Kind == idlechecker.KindMemory
}

// unused reports whether the session has used so little over the window that the
// rule ends it. Kinds of slots that it does not have say nothing; one that it has
// and that was not measured well enough speaks for the session.
func (r *Rule) unused(s *Subject) (why string, ok bool) {
	var below []string
	held := 0
	for _, kind := range slices.Sorted(maps.Keys(r.Thresholds)) {
		if !slices.Contains(s.Kinds, kind) {
			continue
		}
		held++
		level, known := s.Over(r.series(kind), r.Timeout)
		most, got, what := r.Thresholds[kind], level.Mean, "used "+kind
		if r.Kind == idlechecker.KindMemory {
			got, what = level.Peak, "memory in use of "+kind
		}
		if known && got <= most {
			below = append(below, fmt.Sprintf("%s %s, at most %s", what, percent(got), percent(most)))
		}
	}
	if len(below) == 0 || !r.Any && len(below) < held {
		return "", false
	}
	word := "on average "
	if r.Kind == idlechecker.KindMemory {
		word = "never more "
	}
	return word + "over the last " + Span(r.Timeout) + ": " + strings.Join(below, "; "), true
}

// blind reports whether the rule lacks measurements of the session to go by.
func (r *Rule) blind(s *Subject) bool {
	for kind := range r.Thresholds {
		if _, known := s.Over(r.series(kind), r.Timeout); !known && slices.Contains(s.Kinds, kind) {
			return true
		}
	}
	return false
}

// series is what the rule looks at of a kind of slot.
func (r *Rule) series(kind string) string {
	if r.Kind == idlechecker.KindMemory {
		return kind + memory
	}
	return kind
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func percent(p float64) string { return fmt.Sprintf("%.3g %%", p) }

// Span is a length of time as people read it, in its two largest units.
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	var parts []string
	for _, u := range []struct {
		is   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / u.is; n > 0 && len(parts) < 2 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			d -= n * u.is
		} else if len(parts) > 0 {
			break
		}
	}
	if len(parts) == 0 {
		return "0 s"
	}
	return strings.Join(parts, " ")
}
