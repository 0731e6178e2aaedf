// Package suite is the common part of the conformance suites of all plugin contracts: the results
// of checks, and the checks that apply to any plugin program. Only the suites of contracts import
// it.
package suite

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Outcome is the outcome of a check.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "pass"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "skip"
)

// Check is one requirement of a contract.
type Check struct {
	Name string
	Want string // the requirement in one line
}

// Result is the result of a check.
type Result struct {
	Check
	Outcome Outcome
	Detail  string // why it failed or was skipped, or a measurement
	Log     string // the plugin's log of a failed check
	Took    time.Duration
}

// Skip is the error of a check that does not apply to the plugin.
type Skip string

func (s Skip) Error() string { return string(s) }

// Note is the error of a check that passed and reports a measurement.
type Note string

func (n Note) Error() string { return string(n) }

// Conclude converts the error of a check, or nil, to its result.
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

// Show reports the result as the result of a Go test.
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

// Only returns the named checks, or all if no names are given.
func Only[C any](all []C, name func(C) string, names []string) ([]C, error) {
	for _, n := range names {
		if !slices.ContainsFunc(all, func(c C) bool { return name(c) == n }) {
			return nil, fmt.Errorf("check %q does not exist", n)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(c C) bool { return !slices.Contains(names, name(c)) }), nil
}
