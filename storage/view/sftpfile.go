package view

import (
	"fmt"
	"os"
	"path"
	"sync/atomic"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// sftpReading is a file that is read.
type sftpReading struct {
	fs   *sftpFS
	name string
	file *os.File
	at   place
	read atomic.Int64
}

func (r *sftpReading) ReadAt(p []byte, at int64) (int, error) {
	if err := r.fs.t.still(r.fs.ctx, r.at.folder, false); err != nil {
		return 0, r.fs.told(r.name, err)
	}
	n, err := r.file.ReadAt(p, at)
	r.read.Add(int64(n))
	return n, r.fs.told(r.name, err)
}

func (r *sftpReading) Close() error {
	r.fs.end()
	r.fs.t.did(r.at, storagepb.Doing_READ, r.at.path, r.read.Load())
	return r.file.Close()
}

// sftpWriting is a file that is written.
type sftpWriting struct {
	fs        *sftpFS
	name      string
	at        place
	draft     *transfer.Draft
	written   atomic.Int64
	front     front
	inPlace   bool         // what was written is there however it ends
	fresh     bool         // there was no file
	half      bool         // but a half of one
	resumed   bool         // which this continues with
	exclusive bool         // it must be a new one
	floor     atomic.Int64 // where who appends may begin
	cut       error        // why the client will not close it
}

func (w *sftpWriting) WriteAt(p []byte, at int64) (int, error) {
	if err := w.fs.t.still(w.fs.ctx, w.at.folder, true); err != nil {
		return 0, w.fs.told(w.name, err)
	}
	if at < w.floor.Load() {
		return 0, w.fs.told(w.name, fmt.Errorf("%q: is open for appending, and byte %d is there: %w", w.name, at, errdefs.ErrInvalidArgument))
	}
	n, err := w.draft.WriteAt(p, at)
	w.written.Add(int64(n))
	w.front.wrote(at, at+int64(n))
	return n, w.fs.told(w.name, err)
}

func (w *sftpWriting) truncate(size int64) error {
	w.front.cut(size)
	w.floor.Store(min(w.floor.Load(), size))
	return w.draft.Truncate(size)
}

func (w *sftpWriting) ReadAt(p []byte, at int64) (int, error) {
	if err := w.fs.t.still(w.fs.ctx, w.at.folder, false); err != nil {
		return 0, w.fs.told(w.name, err)
	}
	n, err := w.draft.ReadAt(p, at)
	return n, w.fs.told(w.name, err)
}

func (w *sftpWriting) stat() (info, error) {
	i, err := w.draft.Stat()
	if err != nil {
		return info{}, err
	}
	return info{name: path.Base(w.name), mode: i.Mode().Perm(), size: i.Size(), modified: i.ModTime()}, nil
}

// TransferError is told when the connection has gone: what is there is not the file.
func (w *sftpWriting) TransferError(err error) { w.cut = err }

// Close publishes the file.
func (w *sftpWriting) Close() error {
	err := w.close()
	if w.inPlace && w.written.Load() > 0 || !w.inPlace && w.cut == nil && !w.untouched() && err == nil {
		w.fs.t.did(w.at, storagepb.Doing_WROTE, w.at.path, w.written.Load())
	}
	return w.fs.told(w.name, err)
}

func (w *sftpWriting) close() error {
	w.fs.mu.Lock()
	w.fs.open--
	if w.fs.writing[w.name] == w {
		delete(w.fs.writing, w.name)
	}
	w.fs.mu.Unlock()
	if w.cut != nil || w.untouched() {
		return w.spare()
	}
	if err := w.fs.t.still(w.fs.ctx, w.at.folder, true); err != nil {
		w.draft.Discard()
		return err
	}
	var when transfer.Condition
	if w.exclusive {
		when = func(there *volume.Entry) error {
			if there != nil {
				return fmt.Errorf("%q: exists: %w", w.name, errdefs.ErrAlreadyExists)
			}
			return nil
		}
	}
	err := w.draft.Publish(when)
	if err == nil && w.half && !w.resumed {
		if err := w.fs.t.dropHalf(w.fs.ctx, w.name); err != nil { // it is swept
			w.fs.t.views.cfg.Logger.Warn("drop the half of a file that is there", "error", err)
		}
	}
	return err
}

// untouched is a half that no one continued with.
func (w *sftpWriting) untouched() bool {
	return w.resumed && w.floor.Load() > 0 && w.written.Load() == 0
}

// spare keeps what there is of a new file for who continues with it.
func (w *sftpWriting) spare() error {
	size := w.front.reached()
	if !w.fresh || size == 0 {
		w.draft.Discard()
		return nil
	}
	err := w.draft.Spare(w.at.halfOf(), size)
	if errdefs.IsConflict(err) {
		return nil // another connection continues already
	}
	return err
}
