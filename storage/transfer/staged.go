package transfer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// Place is the target of a file, and the user who writes it.
type Place struct {
	User, Volume, Scope, Folder, Path string
	// Parents creates missing directories when the file is published.
	Parents bool
}

// StagedFile is a file that is written in the staging directory, in any order, and moves to its
// folder in one step. Unlike an upload, it ends with its process, except if Resume created it.
// After a crash, a sweep removes it.
type StagedFile struct {
	server  *Server
	volume  *volume.Volume
	staging *volume.Staging // nil if a file of the folder itself is written to
	upload  *upload
	file    *os.File
	there   int64 // bytes that existed before

	mu       sync.Mutex
	set      volume.Attributes
	end      int64 // end of the written bytes
	reserved int64
	failed   error // error of a write; the contents are incomplete
	done     bool
}

const (
	// step is the amount that a file of unknown size reserves at once.
	step      = 16 << 20
	maxStaged = 1 << 44 // 16 TiB, as for an upload
)

// Stage creates a staged file. It reserves the size, which is 0 if unknown. The caller must
// call Publish or Discard.
func (s *Server) Stage(ctx context.Context, at Place, size int64) (*StagedFile, error) {
	d, err := s.newStaged(at)
	if err != nil {
		return nil, err
	}
	if err := d.reserve(ctx, size); err != nil {
		return nil, err
	}
	c := d.upload.Claims
	if d.staging, err = d.volume.Staging(c.Scope); err != nil {
		d.volume.Withdraw(c.Scope, d.upload.id)
		return nil, err
	}
	d.file, err = d.staging.Open(d.upload.part(), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		d.volume.Withdraw(c.Scope, d.upload.id)
		return nil, errors.Join(err, d.staging.Close())
	}
	return d, nil
}

// newStaged returns a staged file without bytes for a new file.
func (s *Server) newStaged(at Place) (*StagedFile, error) {
	c := ticket.Claims{Operation: ticket.Upload, Volume: at.Volume, Scope: at.Scope, Folder: at.Folder, Path: at.Path, User: at.User}
	v, err := s.cfg.Volumes.Get(c.Volume)
	if err != nil {
		return nil, err
	}
	if err := checkTarget(v, c); err != nil {
		return nil, err
	}
	d := s.stagedOf(v, c)
	d.upload.noParents = !at.Parents
	return d, nil
}

func (s *Server) stagedOf(v *volume.Volume, c ticket.Claims) *StagedFile {
	name := uuid.New()
	return &StagedFile{server: s, volume: v, upload: &upload{Claims: c, id: hex.EncodeToString(name[:])}}
}

// reserve reserves storage up to an offset.
func (d *StagedFile) reserve(ctx context.Context, end int64) error {
	if end > maxStaged {
		return problem.TooLarge("Content-Length", maxStaged)
	}
	if end <= d.reserved {
		return nil
	}
	if err := reserve(ctx, d.volume, d.upload.Claims.Scope, volume.Room{Writer: d.upload.id, Size: end, There: d.there}, end-d.reserved); err != nil {
		return err
	}
	d.reserved = end
	return nil
}

// WriteAt writes a part of the file. After a failed write, the file can only be discarded.
func (d *StagedFile) WriteAt(p []byte, at int64) (int, error) {
	if err := d.room(at + int64(len(p))); err != nil {
		return 0, err
	}
	n, err := d.file.WriteAt(p, at)
	d.server.metrics.received.Add(float64(n))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end = max(d.end, at+int64(n))
	d.volume.Wrote(d.upload.Claims.Scope, d.upload.id, d.end)
	if err != nil {
		d.failed = d.server.explain(d.upload.Claims, written(err))
		return n, d.failed
	}
	return n, nil
}

func (d *StagedFile) room(end int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	want := end
	if end > d.reserved {
		want = end + step
	}
	err := d.reserve(context.Background(), want)
	if status, _ := Status(err); err != nil && status == http.StatusInsufficientStorage {
		err = d.reserve(context.Background(), end)
	}
	if err != nil {
		d.failed = err
	}
	return err
}

// ReadAt reads written bytes.
func (d *StagedFile) ReadAt(p []byte, at int64) (int, error) { return d.file.ReadAt(p, at) }

// Truncate sets the size of the file.
func (d *StagedFile) Truncate(size int64) error {
	if err := d.room(size); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.file.Truncate(size); err != nil {
		d.failed = d.server.explain(d.upload.Claims, written(err))
		return d.failed
	}
	d.end = size
	d.volume.Wrote(d.upload.Claims.Scope, d.upload.id, d.end)
	return nil
}

// Set records the attributes that the file gets when it is published.
func (d *StagedFile) Set(a volume.Attributes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.Mode != nil {
		d.set.Mode = a.Mode
	}
	if a.Modified != nil {
		d.set.Modified = a.Modified
	}
}

// Stat returns the size and the modification time of the staged file. Publish keeps both.
func (d *StagedFile) Stat() (os.FileInfo, error) { return d.file.Stat() }

// Size returns the number of bytes in the file.
func (d *StagedFile) Size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end
}

// Condition examines the file that would be replaced, nil if there is none. An error prevents
// the replacement.
type Condition func(there *volume.Entry) error

// Publish moves the file to its place. If a file exists there, it is replaced if the
// condition, which can be nil, returns no error.
func (d *StagedFile) Publish(when Condition) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return fmt.Errorf("publish: the file is already closed: %w", errdefs.ErrFailedPrecondition)
	}
	if d.failed != nil {
		d.discard()
		return d.failed
	}
	d.upload.Claims.Size = d.end - d.there
	if d.upload.Checkpoint != nil { // locked until the file is moved
		lock, err := unix.FcntlInt(d.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		defer unix.Close(lock)
	}
	x := &lockedUpload{upload: d.upload, staging: d.staging, file: d.file, attributes: d.set}
	if err := d.publishStaged(x, when); err != nil {
		d.discard()
		return d.server.explain(d.upload.Claims, err)
	}
	d.volume.Stays(d.upload.Claims.Scope, d.upload.id, d.end)
	d.done = true
	if d.staging == nil {
		return nil
	}
	d.removeCheckpoint()
	return d.staging.Close()
}

func (d *StagedFile) publishStaged(x *lockedUpload, when Condition) error {
	switch {
	case d.staging == nil:
		return d.keep(x)
	case when == nil:
		return x.moveIntoFolder(d.volume)
	}
	return d.server.publishWhen(d.volume, x, when)
}

// publishWhen moves a complete upload to its place if the condition returns no error for the
// file that it would replace.
func (s *Server) publishWhen(v *volume.Volume, x *lockedUpload, when Condition) error {
	if err := x.finalize(); err != nil {
		return err
	}
	f, err := v.Folder(x.Claims.Scope, x.Claims.Folder)
	if err != nil {
		return err
	}
	defer f.Close()
	// The lock makes the check and the move atomic for all writers with a condition. A file that
	// another writer creates in between is not replaced; the loop checks the condition for it.
	s.conditional.Lock()
	defer s.conditional.Unlock()
	for {
		there, err := f.Stat(x.Claims.Path)
		seen := &there
		if errdefs.IsNotFound(err) {
			seen, err = nil, nil
		}
		if err != nil {
			return err
		}
		if err := when(seen); err != nil {
			return err
		}
		err = f.Publish(x.staging, x.part(), x.Claims.Path, volume.Placing{Replace: seen != nil, Parents: !x.noParents})
		if seen != nil || !errdefs.IsAlreadyExists(err) {
			return err
		}
	}
}

// Discard removes the file unless it was published.
func (d *StagedFile) Discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.discard()
}

func (d *StagedFile) discard() {
	if d.done {
		return
	}
	d.done = true
	defer d.file.Close() // closed last, because the open file has the lock; Publish has closed it already
	if d.staging == nil {
		d.volume.Stays(d.upload.Claims.Scope, d.upload.id, d.end)
		return
	}
	d.volume.Withdraw(d.upload.Claims.Scope, d.upload.id)
	d.removeCheckpoint()
	if err := d.staging.Remove(d.upload.part()); err != nil {
		d.server.log.Warn("discard a staged file", "error", err)
	}
	d.staging.Close()
}

// removeCheckpoint removes the note that Resume would continue from.
func (d *StagedFile) removeCheckpoint() {
	if d.upload.Checkpoint == nil {
		return
	}
	if err := d.staging.Remove(d.upload.note()); err != nil { // the sweep removes it later
		d.server.log.Warn("remove the checkpoint of a staged file", "error", err)
	}
}

// Edit opens a file of a folder to change it in place, for a client that appends to it or
// writes into its middle. Writes are visible at once, Publish makes them durable, and Discard
// keeps them.
func (s *Server) Edit(at Place) (*StagedFile, error) {
	c := ticket.Claims{Operation: ticket.Upload, Volume: at.Volume, Scope: at.Scope, Folder: at.Folder, Path: at.Path, User: at.User}
	v, err := s.cfg.Volumes.Get(c.Volume)
	if err != nil {
		return nil, err
	}
	f, err := v.Folder(c.Scope, c.Folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := s.stagedOf(v, c)
	if d.file, err = f.OpenToChange(c.Path); err != nil {
		return nil, err
	}
	info, err := d.file.Stat()
	if err == nil {
		err = volume.Disarm(d.file)
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	d.there, d.end, d.reserved = info.Size(), info.Size(), info.Size()
	return d, nil
}

// keep makes changes of a file in place durable.
func (d *StagedFile) keep(x *lockedUpload) error {
	err := d.set.Set(x.file)
	if err := errors.Join(err, x.file.Sync(), x.file.Close()); err != nil {
		return written(err)
	}
	return nil
}
