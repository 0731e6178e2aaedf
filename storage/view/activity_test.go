package view

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/storage/storagepb"
)

// ledger is a manager that accepts a limited number of calls.
type ledger struct {
	Manager
	room     int
	recorded map[string]int // reported operations, by folder
}

func (l *ledger) Record(_ context.Context, q *storagepb.RecordRequest) (*storagepb.RecordResponse, error) {
	if l.room == 0 {
		return nil, fmt.Errorf("away: %w", errdefs.ErrUnavailable)
	}
	l.room--
	for _, d := range q.Activities {
		l.recorded[d.Folder]++
	}
	return &storagepb.RecordResponse{}, nil
}

// Records of file activity survive kills of the proxy at any time, until a manager has received
// them. No record is lost, and no record is sent again after a later round.
func TestTrailOutlivesKills(t *testing.T) {
	const rows = 2*maxBatch + 1
	dir := t.TempDir()
	m := &ledger{recorded: map[string]int{}}
	// A killed proxy is one that the test no longer uses.
	proxy := func() *activityLog {
		tr := newActivityLog(m, dir, slog.New(slog.DiscardHandler))
		tr.load()
		return tr
	}
	round := func(tr *activityLog) {
		tr.collect(time.Time{})
		tr.flush(t.Context())
		tr.keep()
	}
	first := proxy()
	for i := range rows {
		first.note(actor{user: uuid.NewString(), folder: fmt.Sprint(i)}, storagepb.FileOperation_READ, "f", 1, time.Now())
	}
	round(first)
	proxy() // killed before its first round
	m.room = 1
	round(proxy()) // the manager accepts the first call only
	if len(m.recorded) != maxBatch {
		t.Fatalf("%d rows recorded, want %d", len(m.recorded), maxBatch)
	}
	proxy()
	m.room = rows
	proxy().flush(t.Context()) // killed after all rows were sent, before it recorded that
	round(proxy())
	if len(m.recorded) != rows {
		t.Errorf("%d rows recorded, want %d", len(m.recorded), rows)
	}
	var twice int // rows that an earlier proxy has also sent
	for row, n := range m.recorded {
		if n > 2 {
			t.Errorf("row %s was recorded %d times", row, n)
		}
		twice += n - 1
	}
	if twice != rows-maxBatch {
		t.Errorf("%d rows were recorded twice, want %d", twice, rows-maxBatch)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// A proxy that is killed while it collects activity has already stored it.
func TestTrailKeepsWhatItGathers(t *testing.T) {
	dir := t.TempDir()
	m := &ledger{room: 1, recorded: map[string]int{}}
	killed := newActivityLog(m, dir, slog.New(slog.DiscardHandler))
	killed.note(actor{user: uuid.NewString(), folder: "f"}, storagepb.FileOperation_WROTE, "a", 1, time.Now())
	killed.collect(time.Now()) // a tick: no record is due yet
	killed.flush(t.Context())
	killed.keep()
	if len(m.recorded) != 0 {
		t.Fatal("it is recorded too early")
	}
	next := newActivityLog(m, dir, slog.New(slog.DiscardHandler))
	next.load()
	next.flush(t.Context())
	next.keep()
	if m.recorded["f"] != 1 {
		t.Errorf("told %v", m.recorded)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
