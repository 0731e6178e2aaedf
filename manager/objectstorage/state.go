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

// Failure is an item that failed, and the reason.
type Failure struct{ Path, Error string }

// maxFailures limits the stored failures of a task; all are counted.
const maxFailures = 100

// Figures are the progress of a task.
type Figures struct {
	Files, FilesTotal int64 // finished and total number
	Bytes, BytesTotal int64
	Left              int64 // files that existed and were equal
	Failed            int64
	Failures          []Failure
}

// state is the state that a task continues from.
type state struct {
	Figures
	Counted bool   // the totals are complete
	Count   string // the last item that was counted
	// After is the last finished page. Settled has the finished items of the next page.
	After   string
	Settled []string
	// Sent is the last item whose transfer has begun. Existing objects up to it may be from an
	// earlier run of this task.
	Sent  string
	Ended bool
	// Upload is the multipart upload of a file.
	Upload *parts
	// Stuck is the time since which the storage has not responded.
	Stuck *time.Time
}

// FiguresOf returns the progress of a task; nil for tasks of other kinds.
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

// again resets the position after a complete walk.
func (st *state) again() {
	*st = state{Sent: st.Sent, Upload: st.Upload}
}

// settled records the result of one item.
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

// passed records that a page is finished.
func (st *state) passed(last string) { st.After, st.Settled = last, nil }

func (st *state) has(name string) bool { return slices.Contains(st.Settled, name) }

// outcome returns the final error of a task, or nil.
func (st *state) outcome(verb string) error {
	st.Ended = true
	if st.Failed == 0 {
		return nil
	}
	first := st.Failures[0]
	return problem.Precondition("%d of %d files could not be %s; %.80s: %s", st.Failed, st.Files, verb, first.Path, first.Error)
}

// before reports whether a path comes before another one in a walk, where the files of a directory
// take the place of the directory's name.
func before(a, b string) bool {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) < 0
}
