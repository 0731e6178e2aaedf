package view

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/internal/wholefile"
	"github.com/berthhq/berth/storage/storagepb"
)

const (
	// quiet is how long a client must not have accessed a folder before its activity there is
	// reported, and longest is the longest time without a report. A client that writes 10,000 files
	// thus creates one row per minute.
	quiet    = 15 * time.Second
	longest  = time.Minute
	sendTick = 5 * time.Second
	// sendTimeout limits one call with at most maxBatch rows. maxUnsent limits the rows that
	// wait while no manager answers.
	sendTimeout = 10 * time.Second
	maxBatch    = 100
	maxUnsent   = 10_000
	maxPaths    = 5 // examples per kind of operation
)

// actor identifies activity that is reported as one row: one client in one folder.
type actor struct{ user, credential, address, protocol, folder string }

// activityLog collects the file activity of clients until a manager has recorded it.
type activityLog struct {
	manager Manager
	file    string // stores the activity that no manager has recorded
	log     *slog.Logger

	mu     sync.Mutex
	open   map[actor]*storagepb.FileActivity
	unsent []*storagepb.FileActivity
	lost   int
	kept   bool // the file contains all unsent rows
}

func newActivityLog(m Manager, dir string, log *slog.Logger) *activityLog {
	return &activityLog{manager: m, file: filepath.Join(dir, "untold"), log: log, open: map[actor]*storagepb.FileActivity{}}
}

// did records an operation of a client at a place.
func (t *tree) did(at place, kind storagepb.FileOperation_Kind, path string, bytes int64) {
	t.views.activity.note(actor{at.who.user, at.who.credential, at.who.address, t.protocol, at.folder.ref.Folder}, kind, path, bytes, time.Now())
}

func (t *activityLog) note(who actor, kind storagepb.FileOperation_Kind, path string, bytes int64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.open[who]
	if d == nil {
		if len(t.open)+len(t.unsent) >= maxUnsent {
			t.lost++
			return
		}
		user, _ := uuid.Parse(who.user) // both are ids that the manager sent
		credential, _ := uuid.Parse(who.credential)
		d = &storagepb.FileActivity{
			User: user[:], Credential: credential[:], Address: who.address, Protocol: who.protocol, Folder: who.folder,
			BeganUnixMs: now.UnixMilli(),
		}
		t.open[who] = d
	}
	t.kept = false
	d.EndedUnixMs = now.UnixMilli()
	var done *storagepb.FileOperation
	for _, x := range d.Operations {
		if x.Kind == kind {
			done = x
		}
	}
	if done == nil {
		done = &storagepb.FileOperation{Kind: kind}
		d.Operations = append(d.Operations, done)
	}
	done.Count++
	done.Bytes += bytes
	if len(done.Paths) < maxPaths {
		done.Paths = append(done.Paths, path)
	}
}

// run sends activity to a manager until the context ends, and once more after that. Activity that
// cannot be sent is kept for the next attempt, even across a restart.
func (t *activityLog) run(ctx context.Context) {
	t.load()
	ticks := time.NewTicker(sendTick)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			t.collect(now)
			t.flush(ctx)
			t.keep()
			continue
		case <-ctx.Done():
		}
		t.collect(time.Time{})
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
		defer cancel()
		t.flush(last)
		t.keep()
		return
	}
}

// collect moves the activity that is due to the unsent rows; the zero time moves all.
func (t *activityLog) collect(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for who, d := range t.open {
		if now.IsZero() || now.Sub(time.UnixMilli(d.EndedUnixMs)) >= quiet || now.Sub(time.UnixMilli(d.BeganUnixMs)) >= longest {
			t.unsent = append(t.unsent, d)
			t.kept = false
			delete(t.open, who)
		}
	}
	if t.lost > 0 {
		t.log.Error("file activity is missing from the audit log, because no manager could be reached for too long", "missing", t.lost)
		t.lost = 0
	}
}

// flush sends the unsent rows. Rows that cannot be sent wait for the next attempt.
func (t *activityLog) flush(ctx context.Context) {
	for {
		t.mu.Lock()
		list := t.unsent[:min(len(t.unsent), maxBatch)]
		t.mu.Unlock()
		if len(list) == 0 {
			return
		}
		call, cancel := context.WithTimeout(ctx, sendTimeout)
		_, err := t.manager.Record(call, &storagepb.RecordRequest{Activities: list})
		cancel()
		if err != nil {
			t.log.Warn("send file activity to a manager", "error", err)
			return
		}
		t.mu.Lock()
		t.unsent = t.unsent[len(list):]
		t.kept = false
		t.mu.Unlock()
	}
}

// load reads the unsent rows of an earlier process. They stay in the file until they are sent.
// After a crash, some rows can be sent twice, so that none is lost.
func (t *activityLog) load() {
	raw, err := os.ReadFile(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var q storagepb.RecordRequest
	if err == nil {
		err = proto.Unmarshal(raw, &q)
	}
	if err != nil {
		t.log.Error("read unsent file activity", "file", t.file, "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsent = append(q.Activities, t.unsent...)
}

// keep writes the unsent rows and the current activity to the file, or removes the file if there
// are none. A proxy that is killed loses the activity since the last tick.
func (t *activityLog) keep() {
	t.mu.Lock()
	if t.kept {
		t.mu.Unlock()
		return
	}
	list := slices.Concat(t.unsent, slices.Collect(maps.Values(t.open)))
	raw, err := proto.Marshal(&storagepb.RecordRequest{Activities: list}) // under the lock, because note changes the rows
	t.kept = true
	t.mu.Unlock()
	if err == nil && len(list) > 0 {
		err = wholefile.Write(t.file, raw)
	} else if err == nil {
		if err = os.Remove(t.file); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		t.log.Error("store unsent file activity", "rows", len(list), "error", err)
		t.mu.Lock()
		t.kept = false
		t.mu.Unlock()
	}
}
