package transfer

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/volume"
)

// Half is how much was kept of a file from a source that is not at its place, for a
// Resume of the same source.
func (s *Server) Half(at Place, source string) (size int64, found bool, err error) {
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
	u, err := readUpload(st, draftID(at, source))
	if errdefs.IsNotFound(err) {
		return 0, false, nil
	}
	if err != nil || u.Kept == nil {
		return 0, false, err
	}
	return u.Kept.At, true, nil
}

// Spare keeps the first bytes of a draft whose writer was cut off, for a Resume of a
// source, in place of what was kept of it before. Nothing is kept while someone has
// that, which is errdefs.ErrConflict.
func (d *Draft) Spare(source string, size int64) error {
	defer d.Discard() // where something goes wrong
	if err := d.spare(source, size); err != nil {
		return err
	}
	if err := d.Keep(nil); err != nil {
		return err
	}
	d.Leave()
	return nil
}

// spare puts the bytes to where Resume looks for them.
func (d *Draft) spare(source string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done || d.failed != nil || d.staging == nil {
		return fmt.Errorf("spare a draft: is over: %w", errdefs.ErrFailedPrecondition)
	}
	if err := d.file.Truncate(size); err != nil {
		return written(err)
	}
	d.end = size
	if d.upload.Kept != nil {
		return nil // they are there
	}
	c := d.upload.Claims
	id := draftID(Place{User: c.User, Volume: c.Volume, Scope: c.Scope, Folder: c.Folder, Path: c.Path}, source)
	// No one has what is there now, nor what comes there, until this is over.
	there := &Draft{staging: d.staging, upload: &upload{id: id}}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := there.take(now); err != nil {
		return err
	}
	defer there.file.Close()
	if err := unix.Flock(int(d.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("spare a draft: %w", err)
	}
	if err := d.staging.Rename(d.upload.part(), there.upload.part()); err != nil {
		return err
	}
	d.volume.Withdraw(c.Scope, d.upload.id)
	d.volume.Expect(c.Scope, volume.Room{Writer: id, Size: size})
	d.upload.id, d.upload.Kept = id, &kept{}
	return nil
}
