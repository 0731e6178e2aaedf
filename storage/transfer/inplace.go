package transfer

import (
	"errors"

	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

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
