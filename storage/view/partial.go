package view

import (
	"context"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/pkg/sftp"

	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// A partial file is the first part of a new file whose client was disconnected. Only the user who
// sent it can see it: under the file's name, though not in lists. They can append to it, and no one
// can read it.

// partial returns the size of the partial file at a place without a file.
func (t *tree) partial(ctx context.Context, name string) (size int64, found bool, err error) {
	at, err := t.file(ctx, name, true)
	if err != nil {
		return 0, false, err
	}
	return t.views.cfg.Transfers.PartialSize(at.transfer(), at.partialOf())
}

// partialOf returns the source of partial files of the user.
func (at place) partialOf() string { return "SFTP " + at.who.user }

// resume continues with a partial file.
func (t *tree) resume(ctx context.Context, name string) (*transfer.StagedFile, place, error) {
	at, err := t.file(ctx, name, true)
	if err != nil {
		return nil, at, err
	}
	if err := t.parent(at); err != nil {
		return nil, at, err
	}
	d, err := t.views.cfg.Transfers.Resume(ctx, at.transfer(), at.partialOf(), 0)
	return d, at, err
}

// dropPartial removes a partial file.
func (t *tree) dropPartial(ctx context.Context, name string) error {
	d, _, err := t.resume(ctx, name)
	if err == nil {
		d.Discard()
	}
	return err
}

// partial returns the size of the partial file if the given error says that the file does not
// exist.
func (f *sftpFS) partial(name string, err error) (size int64, found bool) {
	if !errdefs.IsNotFound(err) {
		return 0, false
	}
	size, found, err = f.t.partial(f.ctx, name)
	return size, found && err == nil // a user who cannot write has no partial files
}

// goOn opens a partial file, which can only be appended to.
func (f *sftpFS) goOn(w *sftpWriting, r *sftp.Request) (err error) {
	if w.staged, w.at, err = f.t.resume(f.ctx, w.name); err != nil {
		return err
	}
	mode := modeOf(r)
	w.staged.Set(volume.Attributes{Mode: &mode})
	w.resumed = true
	w.floor.Store(w.staged.Size())
	w.front.to = w.staged.Size()
	f.write(w)
	return nil
}

// truncatePartial sets the size of a partial file.
func (f *sftpFS) truncatePartial(name string, size int64) error {
	d, _, err := f.t.resume(f.ctx, name)
	if err != nil {
		return err
	}
	defer d.Discard() // if something fails below
	if err := d.Truncate(size); err != nil {
		return err
	}
	if err := d.Checkpoint(nil); err != nil {
		return err
	}
	d.Detach()
	return nil
}

// maxAhead limits the ranges that a front remembers. It is more than the requests of a client
// that are processed concurrently.
const maxAhead = 64

// front tracks up to which offset a file has been written without a gap; writes can come in any
// order.
type front struct {
	mu    sync.Mutex
	to    int64
	ahead map[int64]int64 // start → end of the ranges after a gap
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

// cut truncates the file.
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
