package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// checkpoint is the part of an upload's note about a staged file that outlives its process.
type checkpoint struct {
	At   int64           // bytes that are durable on disk
	Note json.RawMessage // written by the caller of Checkpoint
}

// Resume is Stage for a file that takes long to transfer: it continues from the last
// checkpoint of the same source for the same place, even if the earlier process was killed. It
// returns errdefs.ErrConflict while another writer has the file.
func (s *Server) Resume(ctx context.Context, at Place, source string, size int64) (*StagedFile, error) {
	d, err := s.newStaged(at)
	if err != nil {
		return nil, err
	}
	d.upload.id, d.upload.Checkpoint = stagedID(at, source), &checkpoint{}
	if d.staging, err = d.volume.Staging(at.Scope); err != nil {
		return nil, err
	}
	if err := d.lock(ctx); err != nil {
		return nil, errors.Join(err, d.staging.Close())
	}
	if err = d.restore(); err == nil {
		err = d.reserve(ctx, size)
	}
	if err != nil {
		if d.end > 0 {
			d.Detach()
		}
		d.Discard()
		return nil, err
	}
	return d, nil
}

// stagedID is the name of the partial file of a source for a place.
func stagedID(at Place, source string) string {
	sum := sha256.Sum256([]byte(at.Volume + "\n" + at.Scope + "\n" + at.Folder + "\n" + at.Path + "\n" + source))
	return hex.EncodeToString(sum[:16])
}

// lock opens the staged bytes and locks them, after any other writer has released them. The
// other writer may have published or removed the file, so the lock counts only if the name
// still refers to the opened file.
func (d *StagedFile) lock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		f, err := d.staging.Open(d.upload.part(), unix.O_RDWR|unix.O_CREAT)
		if err != nil {
			return err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && d.current(f) {
			d.file = f
			return nil
		}
		f.Close() // nothing was written
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another request is transferring the file: %w", errdefs.ErrConflict)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// current reports whether an open file is still the one in the staging directory.
func (d *StagedFile) current(f *os.File) bool {
	there, err := d.staging.Open(d.upload.part(), unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer there.Close()
	a, aerr := f.Stat()
	b, berr := there.Stat()
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

// restore sets the file to the last checkpoint and drops the bytes after it.
func (d *StagedFile) restore() error {
	info, err := d.file.Stat()
	if err != nil {
		return fmt.Errorf("size of a staged file: %w", err)
	}
	u, err := readUpload(d.staging, d.upload.id)
	if err == nil && u.Checkpoint != nil && u.Checkpoint.At <= info.Size() {
		d.upload.Checkpoint = u.Checkpoint
	} else if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	d.end, d.there, d.reserved = d.upload.Checkpoint.At, d.upload.Checkpoint.At, d.upload.Checkpoint.At
	if err := d.file.Truncate(d.end); err != nil {
		return written(err)
	}
	return nil
}

// LastCheckpoint returns the size at the last checkpoint, and the note that was stored with
// it.
func (d *StagedFile) LastCheckpoint() (at int64, note []byte) {
	return d.upload.Checkpoint.At, d.upload.Checkpoint.Note
}

// Checkpoint makes the written bytes durable for a later Resume, even if the process is
// killed, and stores a note with them.
func (d *StagedFile) Checkpoint(note []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	if err := unix.Fdatasync(int(d.file.Fd())); err != nil {
		d.failed = d.server.explain(d.upload.Claims, written(err))
		return d.failed
	}
	d.upload.Checkpoint = &checkpoint{At: d.end, Note: note}
	return d.upload.save(d.staging)
}

// Detach closes the file and leaves the last checkpoint for a later Resume.
func (d *StagedFile) Detach() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done || d.failed != nil {
		return
	}
	d.done = true
	d.file.Close() // bytes after the last checkpoint may be lost
	d.volume.Stays(d.upload.Claims.Scope, d.upload.id, d.end)
	d.staging.Close()
}
