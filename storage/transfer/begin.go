package transfer

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/volume"
)

// begin creates the files of the upload unless they exist.
func (s *Server) begin(r *http.Request, v *volume.Volume, u *upload) error {
	st, err := v.Staging(u.Claims.Scope)
	if err != nil {
		return err
	}
	defer st.Close()
	release, err := s.locks.take(r.Context(), u.id, func() {})
	if err != nil {
		return err
	}
	defer release()
	old, err := readUpload(st, u.id)
	if err == nil {
		return again(st, old, u)
	}
	if !errdefs.IsNotFound(err) {
		return err
	}
	if err := reserve(r.Context(), v, u.Claims.Scope, volume.Room{Writer: u.id, Size: u.Claims.Size}, u.Claims.Size); err != nil {
		return err
	}
	if err := s.make(v, st, u); err != nil {
		v.Withdraw(u.Claims.Scope, u.id)
		return err
	}
	return nil
}

// make creates the files of an upload, and publishes an empty file at once.
func (s *Server) make(v *volume.Volume, st *volume.Staging, u *upload) error {
	// The bytes come before the note: a note without bytes means a published upload.
	part, err := st.Open(u.part(), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	if err := u.save(st); err != nil {
		return errors.Join(err, part.Close())
	}
	if u.Claims.Size > 0 {
		return part.Close()
	}
	if err := s.publishMatching(v, &lockedUpload{upload: u, staging: st, file: part}); err != nil {
		// If these files stayed, the next request with the ticket would find an upload to
		// resume.
		return errors.Join(err, st.Remove(u.part()), st.Remove(u.note()))
	}
	return nil
}

// again answers a request with a ticket that was already used.
func again(st *volume.Staging, old, u *upload) error {
	part, err := st.Open(old.part(), unix.O_RDONLY)
	if err == nil {
		part.Close()
	}
	if err != nil || old.Ended || !old.sameFile(u.Claims) {
		return fmt.Errorf("ticket was used for an upload that has ended: %w", errdefs.ErrConflict)
	}
	return nil
}

func checkLength(r *http.Request, size int64) error {
	if r.Header.Get("Upload-Defer-Length") != "" {
		return problem.Invalid("Upload-Defer-Length", "is not supported, the ticket fixes the length")
	}
	length, err := number(r, "Upload-Length")
	if err != nil {
		return err
	}
	if length > size {
		return problem.TooLarge("Upload-Length", size)
	}
	if length < size {
		return problem.Invalid("Upload-Length", "is %d, the ticket is for %d bytes", length, size)
	}
	return nil
}
