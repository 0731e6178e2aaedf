package transfer

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/volume"
)

// PartialSize returns the number of bytes of an unfinished file from a source that a Resume of
// the same source can continue from.
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

// movePartial moves the bytes to the name that Resume opens.
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
	// Both files are locked, so that no other writer opens either of them before this is over.
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
