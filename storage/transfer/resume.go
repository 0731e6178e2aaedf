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

// kept is the part of an upload's note that is about a draft which outlives its process.
type kept struct {
	At   int64           // bytes that are on disk, whatever becomes of the machine
	Note json.RawMessage // of who writes it
}

// Resume is Draft for what takes long to get: it continues with what was kept of the same
// source for the same place, also by a process that was killed. While someone else
// writes it there is errdefs.ErrConflict.
func (s *Server) Resume(ctx context.Context, at Place, source string, size int64) (*Draft, error) {
	d, err := s.newDraft(at)
	if err != nil {
		return nil, err
	}
	d.upload.id, d.upload.Kept = draftID(at, source), &kept{}
	if d.staging, err = d.volume.Staging(at.Scope); err != nil {
		return nil, err
	}
	if err := d.take(ctx); err != nil {
		return nil, errors.Join(err, d.staging.Close())
	}
	if err = d.found(); err == nil {
		err = d.reserve(ctx, size)
	}
	if err != nil {
		if d.end > 0 {
			d.Leave()
		}
		d.Discard()
		return nil, err
	}
	return d, nil
}

// draftID names what is kept of a source for a place.
func draftID(at Place, source string) string {
	sum := sha256.Sum256([]byte(at.Volume + "\n" + at.Scope + "\n" + at.Folder + "\n" + at.Path + "\n" + source))
	return hex.EncodeToString(sum[:16])
}

// take opens the bytes and locks them, once anyone who has them lets go. Who had them may
// have put them to their place or removed them, which makes them another's file.
func (d *Draft) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		f, err := d.staging.Open(d.upload.part(), unix.O_RDWR|unix.O_CREAT)
		if err != nil {
			return err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && d.named(f) {
			d.file = f
			return nil
		}
		f.Close() // nothing was written
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("somebody else brings it: %w", errdefs.ErrConflict)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// named reports whether the bytes are still those that the staging directory has.
func (d *Draft) named(f *os.File) bool {
	there, err := d.staging.Open(d.upload.part(), unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer there.Close()
	a, aerr := f.Stat()
	b, berr := there.Stat()
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

// found goes to where the bytes were last kept, and drops what came after.
func (d *Draft) found() error {
	info, err := d.file.Stat()
	if err != nil {
		return fmt.Errorf("size of draft: %w", err)
	}
	u, err := readUpload(d.staging, d.upload.id)
	if err == nil && u.Kept != nil && u.Kept.At <= info.Size() {
		d.upload.Kept = u.Kept
	} else if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	d.end, d.there, d.reserved = d.upload.Kept.At, d.upload.Kept.At, d.upload.Kept.At
	if err := d.file.Truncate(d.end); err != nil {
		return written(err)
	}
	return nil
}

// Kept is how much was kept, and what was noted with it.
func (d *Draft) Kept() (at int64, note []byte) { return d.upload.Kept.At, d.upload.Kept.Note }

// Keep makes sure that what was written is there for a later Resume, whatever becomes
// of this process, with a note of who writes it.
func (d *Draft) Keep(note []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	if err := unix.Fdatasync(int(d.file.Fd())); err != nil {
		d.failed = d.server.explain(d.upload.Claims, written(err))
		return d.failed
	}
	d.upload.Kept = &kept{At: d.end, Note: note}
	return d.upload.save(d.staging)
}

// Leave lets go of the file and leaves what was kept of it for a later Resume.
func (d *Draft) Leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done || d.failed != nil {
		return
	}
	d.done = true
	d.file.Close() // what is not kept may be lost
	d.volume.Stays(d.upload.Claims.Scope, d.upload.id, d.end)
	d.staging.Close()
}
