package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/foldergroup"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// lifetime of an upload from its last byte, and of the note that its ticket
// was used.
const lifetime = 24 * time.Hour

// upload is one upload. On disk it is two files in the scope's staging
// directory, ID.json (this struct) and ID.part (the bytes so far). A note
// without bytes is an upload that was published, or ended; the ticket's id
// names both, so a ticket makes one upload, also after a restart and on
// another proxy.
type upload struct {
	Claims  ticket.Claims
	Ended   bool // by the client
	Created time.Time
	// Modified is when the client changed the file; nil: as it arrives.
	Modified *time.Time `json:",omitempty"`
	// Match is the entity tag of the one file that it may replace; empty: whatever is there.
	Match string `json:",omitempty"`
	// Kept is set for a draft.
	Kept *kept `json:",omitempty"`

	id        string
	noParents bool // a draft whose directory has to be there
}

func uploadID(c ticket.Claims) string {
	sum := sha256.Sum256([]byte(c.ID))
	return hex.EncodeToString(sum[:16])
}

func (u *upload) note() string { return u.id + ".json" }
func (u *upload) part() string { return u.id + ".part" }

// sameFile reports whether a ticket, perhaps a newer one, is for this upload.
func (u *upload) sameFile(c ticket.Claims) bool {
	o := u.Claims
	return o.Volume == c.Volume && o.Scope == c.Scope && o.Folder == c.Folder &&
		o.Path == c.Path && o.Size == c.Size && o.User == c.User
}

func readUpload(st *volume.Staging, id string) (*upload, error) {
	u := &upload{id: id}
	f, err := st.Open(u.note(), unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("read upload %s: %w", id, err)
	}
	if err := json.Unmarshal(raw, u); err != nil {
		return nil, fmt.Errorf("read upload %s: %w", id, err)
	}
	return u, nil
}

func (u *upload) save(st *volume.Staging) error {
	raw, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return st.WriteFile(u.note(), raw)
}

// session is an upload that the current request holds.
type session struct {
	*upload
	staging *volume.Staging
	file    *os.File // nil when published
	offset  int64    // bytes on disk

	attributes volume.Attributes
	wrote      func() // notes how far the bytes have come
	deadline   *deadlines
	release    func()
}

func errTaken() error {
	return fmt.Errorf("another request took the upload over: %w", errdefs.ErrConflict)
}

// hold finds an upload by id, checks that the ticket is for it and takes it
// from whatever request holds it.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, id string) (*session, error) {
	c, err := s.claims(w, r, ticket.Upload)
	if err != nil {
		return nil, err
	}
	if !uploadName.MatchString(id) {
		return nil, notFound("upload %q", id)
	}
	v, err := s.cfg.Volumes.Get(c.Volume)
	if err != nil {
		return nil, err
	}
	st, err := v.Staging(c.Scope)
	if err != nil {
		return nil, err
	}
	x := &session{upload: &upload{id: id}, staging: st, deadline: w.(*exchange).deadline}
	if x.release, err = s.locks.take(r.Context(), id, func() { x.deadline.end(errTaken()) }); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if err := x.wait(r.Context(), c); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// errElsewhere is an upload that another process has, perhaps one that is on its way
// out.
var errElsewhere = fmt.Errorf("upload is held by another proxy: %w", errdefs.ErrConflict)

// wait opens the upload, and gives another proxy that has it time to let go.
func (x *session) wait(ctx context.Context, c ticket.Claims) error {
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		err := x.open(c)
		if !errors.Is(err, errElsewhere) {
			return err
		}
		select {
		case <-ctx.Done():
			if cause := x.deadline.gone(); cause != nil {
				return cause
			}
			return err
		case <-time.After(50 * time.Millisecond):
		}
		x.file.Close() // nothing was written; by the next look it may be published
		x.file = nil
	}
}

// open reads the note and the size of what is there.
func (x *session) open(c ticket.Claims) error {
	u, err := readUpload(x.staging, x.id)
	if errdefs.IsNotFound(err) || err == nil && !u.sameFile(c) {
		return notFound("upload %s", x.id) // nothing about the uploads of others
	}
	if err != nil {
		return err
	}
	x.upload = u
	if u.Ended {
		return problem.NotFound("upload " + x.id + ", which its client ended,").WithStatus(http.StatusGone)
	}
	f, err := x.staging.Open(u.part(), unix.O_WRONLY)
	if errdefs.IsNotFound(err) {
		x.offset = u.Claims.Size // published
		return nil
	}
	if err != nil {
		return err
	}
	x.file = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errElsewhere
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("size of upload: %w", err)
	}
	if info.Size() > u.Claims.Size {
		return fmt.Errorf("upload %s has %d bytes, more than %d: %w", x.id, info.Size(), u.Claims.Size, errdefs.ErrInternal)
	}
	x.offset = info.Size()
	return nil
}

func (x *session) close() {
	if x.file != nil {
		x.file.Close() // errors of written bytes were seen by Sync
	}
	x.staging.Close()
	x.release()
}

// publish makes a complete upload visible in its folder. Network file systems
// tell of a full disk only at fsync or close, so both are checked first.
func (x *session) publish(v *volume.Volume) error {
	if err := x.settle(); err != nil {
		return err
	}
	f, err := v.Folder(x.Claims.Scope, x.Claims.Folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Publish(x.staging, x.part(), x.Claims.Path, volume.Placing{Replace: true, Parents: !x.noParents})
}

// settle gives the bytes their attributes and makes sure that they are there.
func (x *session) settle() error {
	if x.attributes.Mode == nil {
		mode := uint32(foldergroup.File) // whatever the umask was
		x.attributes.Mode = &mode
	}
	if x.attributes.Modified == nil {
		x.attributes.Modified = x.Modified
	}
	if err := x.attributes.Set(x.file); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	err := x.file.Sync()
	if err != nil {
		// A second try would find nothing wrong, and a hole for what was lost.
		err = errors.Join(err, x.file.Truncate(0))
	}
	if err := errors.Join(err, x.file.Close()); err != nil {
		x.file = nil
		return written(err)
	}
	x.file = nil
	return nil
}

// errLimit is a product that keeps a limit itself.
var errLimit = fmt.Errorf("the scope's limit is reached: %w", problem.ErrNoSpace)

// written gives an error of writing bytes its class.
func written(err error) error {
	if errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("write upload: %w", errLimit)
	}
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("write upload: no space is left: %w", problem.ErrNoSpace)
	}
	return fmt.Errorf("write upload: %w", err)
}
