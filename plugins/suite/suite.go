// Package suite is what the conformance suites of all plugin contracts share: what
// becomes of a check, and the checks of any program that is a plugin. A contract's
// suite imports it; anyone who writes a plugin imports the suite.
package suite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Outcome of a check.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "pass"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "skip"
)

// Check is one promise of a contract.
type Check struct {
	Name string
	Want string // what is promised, one line
}

// Result is what a check found.
type Result struct {
	Check
	Outcome Outcome
	Detail  string // why it failed or was skipped, or what it measured
	Log     string // the plugin's log of a failed check
	Took    time.Duration
}

// Skip is a check's error when the plugin has nothing for it to look at.
type Skip string

func (s Skip) Error() string { return string(s) }

// Note is a check's error when all is well and there is a figure to tell.
type Note string

func (n Note) Error() string { return string(n) }

// Conclude is the result of a check that ended with an error or none.
func Conclude(c Check, err error, took time.Duration, log *Log) Result {
	r := Result{Check: c, Outcome: Passed, Took: took}
	var skip Skip
	var note Note
	switch {
	case err == nil:
	case errors.As(err, &skip):
		r.Outcome, r.Detail = Skipped, skip.Error()
	case errors.As(err, &note) && err == error(note):
		r.Detail = note.Error()
	default:
		r.Outcome, r.Detail, r.Log = Failed, err.Error(), log.String()
	}
	return r
}

// Show makes the result that of a test.
func (r Result) Show(t *testing.T) {
	t.Helper()
	switch r.Outcome {
	case Failed:
		t.Errorf("%s\nwant: %s\n%s", r.Detail, r.Want, r.Log)
	case Skipped:
		t.Skip(r.Detail)
	case Passed:
		t.Log(r.Detail)
	}
}

// Only is those of all checks that are named, or all.
func Only[C any](all []C, name func(C) string, names []string) ([]C, error) {
	for _, n := range names {
		if !slices.ContainsFunc(all, func(c C) bool { return name(c) == n }) {
			return nil, fmt.Errorf("there is no check %q", n)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(c C) bool { return !slices.Contains(names, name(c)) }), nil
}
