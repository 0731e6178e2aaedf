package starts_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/session/move"
	"github.com/berthhq/berth/manager/starts"
)

var queued = time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC)

// line is an entry of a history some seconds after the place in the queue.
func line(seconds int, from, to lifecycle.Status, code string) starts.Entry {
	return starts.Entry{ID: uuid.New(), At: queued.Add(time.Duration(seconds) * time.Second), From: from, To: to, Code: code}
}

func waits(seconds int, stage string) starts.Entry {
	return line(seconds, lifecycle.Pending, lifecycle.Pending, move.WaitCode(stage))
}

func TestDerive(t *testing.T) {
	t.Parallel()
	const p, sch, prep, ready, cr, run, term = lifecycle.Pending, lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating, lifecycle.Running, lifecycle.Terminating
	for name, tt := range map[string]struct {
		entries []starts.Entry
		want    []starts.Start // times in seconds
	}{
		"at once": {
			[]starts.Entry{line(0, p, p, ""), line(1, p, sch, ""), line(2, sch, ready, ""), line(2, ready, cr, ""), line(5, cr, run, "")},
			[]starts.Start{{Reason: starts.None, Path: starts.Present, Wait: 5, Queue: 1, Create: 4}},
		},
		"for capacity, then a limit": {
			[]starts.Entry{waits(0, report.StageRoom), waits(40, report.StageLimits), line(60, p, sch, ""), line(61, sch, prep, ""), line(91, prep, ready, ""), line(92, ready, cr, ""), line(95, cr, run, "")},
			[]starts.Start{{Reason: starts.Room, Path: starts.Pulled, Wait: 95, Queue: 61, Pull: 30, Create: 4}},
		},
		"an attempt that failed": {
			[]starts.Entry{line(1, p, sch, ""), line(2, sch, cr, ""), line(62, cr, p, ""), line(63, p, sch, ""), line(64, sch, cr, ""), line(70, cr, run, "")},
			[]starts.Start{{Reason: starts.Retry, Path: starts.Present, Wait: 70, Queue: 63, Create: 7}},
		},
		"started again after its run": {
			[]starts.Entry{line(1, p, sch, ""), line(1, sch, cr, ""), line(3, cr, run, ""), line(100, run, term, ""), line(110, term, p, ""),
				waits(110, report.StageOrder), line(150, p, sch, ""), line(150, sch, cr, ""), line(152, cr, run, "")},
			[]starts.Start{{Reason: starts.None, Path: starts.Present, Wait: 3, Queue: 1, Create: 2}, {Reason: starts.Order, Path: starts.Present, Wait: 42, Queue: 40, Create: 2}},
		},
		"an entry of an older version": {
			[]starts.Entry{line(0, p, p, "waiting"), line(30, p, sch, ""), line(30, sch, cr, ""), line(31, cr, run, "")},
			[]starts.Start{{Reason: starts.Unknown, Path: starts.Present, Wait: 31, Queue: 30, Create: 1}},
		},
		"a clock that was set back": {
			[]starts.Entry{line(-9, p, sch, ""), line(-8, sch, cr, ""), line(-7, cr, run, "")},
			[]starts.Start{{Reason: starts.None, Path: starts.Present}},
		},
		"never ran": {[]starts.Entry{waits(0, report.StageRoom), line(9, p, lifecycle.Cancelled, "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := starts.Derive(queued, tt.entries)
			if len(got) != len(tt.want) {
				t.Fatalf("%d starts, want %d", len(got), len(tt.want))
			}
			for i, g := range got {
				w := tt.want[i]
				w.Wait, w.Queue, w.Pull, w.Create = w.Wait*time.Second, w.Queue*time.Second, w.Pull*time.Second, w.Create*time.Second
				w.Event, w.At = g.Event, g.At
				if g != w {
					t.Errorf("start %d: %+v, want %+v", i, g, w)
				}
				if g.Wait != g.Queue+g.Pull+g.Create {
					t.Errorf("start %d: stages do not add up to %v", i, g.Wait)
				}
			}
		})
	}
}
