package idle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/ent/idlechecker"
)

// Rule is the condition of a checker, or of the idle timeout of a policy, on a session.
type Rule struct {
	Name         string // of the checker or policy, for users
	Kind         idlechecker.Kind
	Timeout      time.Duration // lifetime, time without traffic, or length of the measured window
	Grace        time.Duration // time during which a new session is not checked
	NewUserGrace time.Duration // time during which the sessions of a new user are not checked
	Warning      time.Duration // between the warning and the end
	Any          bool          // one exceeded threshold suffices
	Thresholds   map[string]float64
	Types        []string // types of sessions
	Ignored      []string // apps whose traffic does not count
}

// Subject is a running session with the data that rules need.
type Subject struct {
	Type    string
	Started time.Time
	Joined  time.Time // when its owner became a user
	// Used is when a user was last connected or data moved, as far as known, by the app through which
	// it was; "" without one.
	Used  map[string]time.Time
	Kinds []string // kinds of the session's slots
	// Over returns the level of a series over the span that ends now; false if there are not enough
	// measurements.
	Over func(series string, span time.Duration) (Level, bool)
}

// newest returns when the session was last used, through whatever app.
func (s *Subject) newest() (at time.Time) {
	for _, t := range s.Used {
		at = later(at, t)
	}
	return at
}

// Level is the utilization over a span, in percent of the capacity.
type Level struct{ Mean, Peak float64 }

// Due returns when the rule ends the session, ignoring warnings, and why. It returns false if the
// rule does not apply at the moment.
func (r *Rule) Due(s *Subject, now time.Time) (at time.Time, why string, ok bool) {
	if !slices.Contains(r.Types, s.Type) {
		return time.Time{}, "", false
	}
	switch r.Kind {
	case idlechecker.KindLifetime:
		at, why = s.Started.Add(r.Timeout), "running since "+clockTime(s.Started)+"; the limit is "+Span(r.Timeout)
	case idlechecker.KindNetwork:
		used := s.Started
		for app, at := range s.Used {
			if app == "" || !slices.Contains(r.Ignored, app) {
				used = later(used, at)
			}
		}
		at, why = used.Add(r.Timeout), "no open terminal and no traffic since "+clockTime(used)+"; the limit is "+Span(r.Timeout)
	default:
		if why, ok = r.unused(s); !ok {
			return time.Time{}, "", false
		}
		at = now
	}
	left := later(s.Started.Add(r.Grace), s.Joined.Add(r.NewUserGrace)) // the session is not checked before
	if r.measures() && left.After(now) {
		return time.Time{}, "", false
	}
	return later(at, left), why, true
}

// measures reports whether the rule depends on measurements and not on the clock.
func (r *Rule) measures() bool {
	return r.Kind == idlechecker.KindUtilization || r.Kind == idlechecker.KindMemory
}

// unused reports whether the session has used so little over the window that the rule ends it.
// Kinds of slots that the session does not have are ignored; a kind without enough
// measurements counts as used.
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

// blind reports whether the rule lacks measurements of the session.
func (r *Rule) blind(s *Subject) bool {
	for kind := range r.Thresholds {
		if _, known := s.Over(r.series(kind), r.Timeout); !known && slices.Contains(s.Kinds, kind) {
			return true
		}
	}
	return false
}

// series returns the series that the rule uses for a kind of slot.
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

// Span formats a duration for users, in its two largest units.
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
