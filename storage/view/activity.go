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
	// quiet is how long nothing must have come to what someone does in a folder for
	// it to be told, and longest how long it may continue untold. A client that writes
	// 10,000 files makes a row a minute, not 10,000.
	quiet    = 15 * time.Second
	longest  = time.Minute
	tellTick = 5 * time.Second
	// tellTimeout bounds one call of maxTold, and maxUntold what is kept while no
	// manager answers.
	tellTimeout = 10 * time.Second
	maxTold     = 100
	maxUntold   = 10_000
	maxPaths    = 5 // of each kind, as examples
)

// doer is whose doings are told together: one client in one folder.
type doer struct{ user, credential, address, protocol, folder string }

// trail gathers what people do until a manager has been told.
type trail struct {
	manager Manager
	file    string // keeps what could not be told
	log     *slog.Logger

	mu     sync.Mutex
	open   map[doer]*storagepb.Doings
	untold []*storagepb.Doings
	lost   int
	kept   bool // the file holds all that is not told
}

func newTrail(m Manager, dir string, log *slog.Logger) *trail {
	return &trail{manager: m, file: filepath.Join(dir, "untold"), log: log, open: map[doer]*storagepb.Doings{}}
}

// did notes what a guest did at a place.
func (t *tree) did(at place, kind storagepb.Doing_Kind, path string, bytes int64) {
	t.views.trail.note(doer{at.who.user, at.who.credential, at.who.address, t.protocol, at.folder.ref.Folder}, kind, path, bytes, time.Now())
}

func (t *trail) note(who doer, kind storagepb.Doing_Kind, path string, bytes int64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.open[who]
	if d == nil {
		if len(t.open)+len(t.untold) >= maxUntold {
			t.lost++
			return
		}
		user, _ := uuid.Parse(who.user) // both were ids of the manager's
		credential, _ := uuid.Parse(who.credential)
		d = &storagepb.Doings{
			User: user[:], Credential: credential[:], Address: who.address, Protocol: who.protocol, Folder: who.folder,
			BeganUnixMs: now.UnixMilli(),
		}
		t.open[who] = d
	}
	t.kept = false
	d.EndedUnixMs = now.UnixMilli()
	var done *storagepb.Doing
	for _, x := range d.Done {
		if x.Kind == kind {
			done = x
		}
	}
	if done == nil {
		done = &storagepb.Doing{Kind: kind}
		d.Done = append(d.Done, done)
	}
	done.Count++
	done.Bytes += bytes
	if len(done.Paths) < maxPaths {
		done.Paths = append(done.Paths, path)
	}
}

// run tells until the context ends, and once more then. What cannot be told is kept
// for the next time and the next start.
func (t *trail) run(ctx context.Context) {
	t.load()
	ticks := time.NewTicker(tellTick)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			t.settle(now)
			t.flush(ctx)
			t.keep()
			continue
		case <-ctx.Done():
		}
		t.settle(time.Time{})
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		defer cancel()
		t.flush(last)
		t.keep()
		return
	}
}

// settle takes what is to be told by now; the zero time takes everything.
func (t *trail) settle(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for who, d := range t.open {
		if now.IsZero() || now.Sub(time.UnixMilli(d.EndedUnixMs)) >= quiet || now.Sub(time.UnixMilli(d.BeganUnixMs)) >= longest {
			t.untold = append(t.untold, d)
			t.kept = false
			delete(t.open, who)
		}
	}
	if t.lost > 0 {
		t.log.Error("the audit trail lacks what people did: no manager was told for too long", "missing", t.lost)
		t.lost = 0
	}
}

// flush tells what is to be told; what cannot be told waits for the next time.
func (t *trail) flush(ctx context.Context) {
	for {
		t.mu.Lock()
		list := t.untold[:min(len(t.untold), maxTold)]
		t.mu.Unlock()
		if len(list) == 0 {
			return
		}
		call, cancel := context.WithTimeout(ctx, tellTimeout)
		_, err := t.manager.Record(call, &storagepb.RecordRequest{Doings: list})
		cancel()
		if err != nil {
			t.log.Warn("tell a manager what people did", "error", err)
			return
		}
		t.mu.Lock()
		t.untold = t.untold[len(list):]
		t.kept = false
		t.mu.Unlock()
	}
}

// load finds what could not be told before. It stays in the file until it is told: who
// is killed between tells some of it twice, which is better than never.
func (t *trail) load() {
	raw, err := os.ReadFile(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var q storagepb.RecordRequest
	if err == nil {
		err = proto.Unmarshal(raw, &q)
	}
	if err != nil {
		t.log.Error("read what was not told", "file", t.file, "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.untold = append(q.Doings, t.untold...)
}

// keep has the file hold what is untold, also what is still gathered, and no file where
// all is told: a proxy that is killed loses what came since the last tick.
func (t *trail) keep() {
	t.mu.Lock()
	if t.kept {
		t.mu.Unlock()
		return
	}
	list := slices.Concat(t.untold, slices.Collect(maps.Values(t.open)))
	raw, err := proto.Marshal(&storagepb.RecordRequest{Doings: list}) // under the lock: note changes what is open
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
		t.log.Error("keep what was not told", "rows", len(list), "error", err)
		t.mu.Lock()
		t.kept = false
		t.mu.Unlock()
	}
}
