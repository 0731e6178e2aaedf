package view

import (
	"context"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/pkg/sftp"

	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// A half is what arrived of a new file before its client was cut off. Who sent it sees
// it under the file's name, though not in lists, and may continue at its end; no one else
// sees anything, and no one can read it.

// half is how much there is of one at a place where there is no file.
func (t *tree) half(ctx context.Context, name string) (size int64, found bool, err error) {
	at, err := t.file(ctx, name, true)
	if err != nil {
		return 0, false, err
	}
	return t.views.cfg.Transfers.Half(at.transfer(), at.halfOf())
}

// halfOf is whose halves they are.
func (at place) halfOf() string { return "SFTP " + at.who.user }

// resume continues with a half.
func (t *tree) resume(ctx context.Context, name string) (*transfer.Draft, place, error) {
	at, err := t.file(ctx, name, true)
	if err != nil {
		return nil, at, err
	}
	if err := t.parent(at); err != nil {
		return nil, at, err
	}
	d, err := t.views.cfg.Transfers.Resume(ctx, at.transfer(), at.halfOf(), 0)
	return d, at, err
}

// dropHalf removes one.
func (t *tree) dropHalf(ctx context.Context, name string) error {
	d, _, err := t.resume(ctx, name)
	if err == nil {
		d.Discard()
	}
	return err
}

// half is what there is of one, where an error says that there is no file.
func (f *sftpFS) half(name string, err error) (size int64, found bool) {
	if !errdefs.IsNotFound(err) {
		return 0, false
	}
	size, found, err = f.t.half(f.ctx, name)
	return size, found && err == nil // who may not write has none
}

// goOn opens a half, whose end alone may be written to.
func (f *sftpFS) goOn(w *sftpWriting, r *sftp.Request) (err error) {
	if w.draft, w.at, err = f.t.resume(f.ctx, w.name); err != nil {
		return err
	}
	mode := modeOf(r)
	w.draft.Set(volume.Attributes{Mode: &mode})
	w.resumed = true
	w.floor.Store(w.draft.Size())
	w.front.to = w.draft.Size()
	f.write(w)
	return nil
}

// truncateHalf makes a half shorter, or longer, for who opens it next.
func (f *sftpFS) truncateHalf(name string, size int64) error {
	d, _, err := f.t.resume(f.ctx, name)
	if err != nil {
		return err
	}
	defer d.Discard() // where something goes wrong
	if err := d.Truncate(size); err != nil {
		return err
	}
	if err := d.Keep(nil); err != nil {
		return err
	}
	d.Leave()
	return nil
}

// maxAhead is how many pieces a front remembers: more than a client's requests that
// are looked at at once.
const maxAhead = 64

// front is how far a file has been written without a gap, by writes in any order.
type front struct {
	mu    sync.Mutex
	to    int64
	ahead map[int64]int64 // beginning → end of what was written behind a gap
}

func (f *front) wrote(from, to int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from > f.to {
		if f.ahead == nil {
			f.ahead = map[int64]int64{}
		}
		if len(f.ahead) < maxAhead {
			f.ahead[from] = max(f.ahead[from], to)
		}
		return
	}
	f.to = max(f.to, to)
	for again := true; again; {
		again = false
		for from, to := range f.ahead {
			if from <= f.to {
				f.to, again = max(f.to, to), true
				delete(f.ahead, from)
			}
		}
	}
}

// cut makes the file as long as that.
func (f *front) cut(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to, f.ahead = min(f.to, size), nil
}

func (f *front) reached() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to
}
