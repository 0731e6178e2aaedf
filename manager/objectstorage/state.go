package objectstorage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
)

// Failure is an item that did not arrive, and why.
type Failure struct{ Path, Error string }

// maxFailures bounds those that a task remembers; all are counted.
const maxFailures = 100

// Figures are how far a task is.
type Figures struct {
	Files, FilesTotal int64 // settled, and found
	Bytes, BytesTotal int64
	Left              int64 // equal ones that were there
	Failed            int64
	Failures          []Failure
}

// state is what a task continues with.
type state struct {
	Figures
	Counted bool   // the totals are whole
	Count   string // the last that was counted
	// After is the last of the pages that are settled, Settled what is of the page
	// after them.
	After   string
	Settled []string
	// Sent is the last that was ever begun: what is there up to it may be of this task.
	Sent  string
	Ended bool
	// Upload is a file on its way in parts.
	Upload *parts
	// Stuck is since when the storage does not answer.
	Stuck *time.Time
}

// FiguresOf reads how far a task is; nil for tasks of other kinds.
func FiguresOf(t *ent.Task) (*Figures, error) {
	if t.Kind != importKind && t.Kind != exportKind {
		return nil, nil
	}
	var st state
	if len(t.State) > 0 {
		if err := json.Unmarshal(t.State, &st); err != nil {
			return nil, fmt.Errorf("read state of task %s: %w", t.ID, err)
		}
	}
	if st.Failures == nil {
		st.Failures = []Failure{}
	}
	return &st.Figures, nil
}

// again begins again what was walked to its end.
func (st *state) again() {
	*st = state{Sent: st.Sent, Upload: st.Upload}
}

// settled notes one item.
func (st *state) settled(name string, size int64, left bool, err error) {
	st.Settled = append(st.Settled, name)
	st.Files++
	st.Stuck = nil
	switch {
	case err != nil:
		st.Failed++
		if len(st.Failures) < maxFailures {
			p, _ := problem.From(err)
			st.Failures = append(st.Failures, Failure{name, p.Message})
		}
	case left:
		st.Left++
		st.Bytes += size
	default:
		st.Bytes += size
	}
}

// passed notes that a page is settled.
func (st *state) passed(last string) { st.After, st.Settled = last, nil }

func (st *state) has(name string) bool { return slices.Contains(st.Settled, name) }

// outcome is what a task ends with.
func (st *state) outcome(verb string) error {
	st.Ended = true
	if st.Failed == 0 {
		return nil
	}
	first := st.Failures[0]
	return problem.Precondition("%d of %d files could not be %s; %s: %s", st.Failed, st.Files, verb, clip(first.Path), first.Error)
}

func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// before reports whether a path comes before another one where a directory's files come
// in the place of its name.
func before(a, b string) bool {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) < 0
}
