package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/volume"
)

// checkpoint is the part of a staged file's state that outlives its process.
type checkpoint struct {
	At   int64           // bytes that are durable on disk
	Note json.RawMessage // written by the caller of Checkpoint
}

// Resume is Stage for a file that takes long to transfer: it continues from the last checkpoint of
// the same source and place, even if the earlier process was killed. It returns errdefs.ErrConflict
// while another writer has the file.
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

// PartialSize returns the size from which Resume can continue an unfinished file of a source.
func (s *Server) PartialSize(at Place, source string) (size int64, found bool, err error) {
	v, err := s.cfg.Volumes.Get(at.Volume)
	if err != nil {
		return 0, false, err
	}
	st, err := v.Staged(at.Scope)
	if errdefs.IsNotFound(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer st.Close()
	u, err := readUpload(st, stagedID(at, source))
	if errdefs.IsNotFound(err) {
		return 0, false, nil
	}
	if err != nil || u.Checkpoint == nil {
		return 0, false, err
	}
	return u.Checkpoint.At, true, nil
}

// SavePartial keeps the first bytes of a staged file whose writer was cut off, for a Resume of
// the source. It replaces an older partial file of the source. It returns errdefs.ErrConflict
// while another writer holds that one.
func (d *StagedFile) SavePartial(source string, size int64) error {
	defer d.Discard() // if something fails below
	if err := d.movePartial(source, size); err != nil {
		return err
	}
	if err := d.Checkpoint(nil); err != nil {
		return err
	}
	d.Detach()
	return nil
}

// movePartial renames the partial file so that Resume finds it.
func (d *StagedFile) movePartial(source string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done || d.failed != nil || d.staging == nil {
		return fmt.Errorf("save a partial file: it is already closed: %w", errdefs.ErrFailedPrecondition)
	}
	if err := d.file.Truncate(size); err != nil {
		return written(err)
	}
	d.end = size
	if d.upload.Checkpoint != nil {
		return nil // the bytes already have that name
	}
	c := d.upload.Claims
	id := stagedID(Place{User: c.User, Volume: c.Volume, Scope: c.Scope, Folder: c.Folder, Path: c.Path}, source)
	// Both files are locked, so that no other writer opens them until the rename is done.
	there := &StagedFile{staging: d.staging, upload: &upload{id: id}}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := there.lock(now); err != nil {
		return err
	}
	defer there.file.Close()
	if err := unix.Flock(int(d.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("save a partial file: %w", err)
	}
	if err := d.staging.Rename(d.upload.part(), there.upload.part()); err != nil {
		return err
	}
	d.volume.Withdraw(c.Scope, d.upload.id)
	d.volume.Expect(c.Scope, volume.Room{Writer: id, Size: size})
	d.upload.id, d.upload.Checkpoint = id, &checkpoint{}
	return nil
}

// sweep removes uploads and copies that no client has continued for their lifetime, and the
// notes of used tickets after the tickets have expired.
func (s *Server) sweep(ctx context.Context, now time.Time) {
	for _, v := range s.cfg.Volumes.All() {
		scopes, err := v.Scopes()
		if err != nil {
			continue // not mounted; a later sweep covers it
		}
		for _, scope := range scopes {
			if ctx.Err() != nil {
				return
			}
			if err := v.SweepArrivals(ctx, scope, now); err != nil {
				s.log.Warn("sweep copies", "volume", v.Name(), "scope", scope, "error", err)
			}
			st, err := v.Staged(scope)
			if err != nil {
				continue // no upload yet
			}
			if err := s.sweepStaging(ctx, v, st, now); err != nil {
				s.log.Warn("sweep uploads", "volume", v.Name(), "scope", scope, "error", err)
			}
			st.Close()
		}
	}
}

func (s *Server) sweepStaging(ctx context.Context, v *volume.Volume, st *volume.Staging, now time.Time) error {
	last := make(map[string]time.Time) // upload → its latest change
	err := st.Each(func(name string, modified time.Time) {
		id, _, _ := strings.Cut(name, ".")
		if modified.After(last[id]) {
			last[id] = modified
		}
	})
	if err != nil {
		return err
	}
	for id, at := range last {
		if now.Sub(at) < lifetime {
			continue
		}
		if err := s.abandon(ctx, v, st, id, now); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes the files of one upload. The note goes first, because bytes without a note
// are not an upload.
func (s *Server) abandon(ctx context.Context, v *volume.Volume, st *volume.Staging, id string, now time.Time) error {
	u, err := readUpload(st, id)
	if err == nil && now.Before(u.Claims.Expires) {
		return nil // the ticket is still valid
	}
	release, err := s.locks.take(ctx, id, func() {})
	if err != nil {
		return err
	}
	defer release()
	if u != nil {
		v.Withdraw(u.Claims.Scope, id)
	}
	for _, suffix := range []string{".json", ".json.new", ".part"} {
		if err := st.Remove(id + suffix); err != nil {
			return err
		}
	}
	return nil
}
