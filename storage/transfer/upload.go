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
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/foldergroup"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// lifetime is how long an upload is kept after its last byte, and how long the note of a used
// ticket is kept.
const lifetime = 24 * time.Hour

// upload is the state of one upload. On disk, it is two files in the scope's staging
// directory: ID.json (this struct) and ID.part (the bytes received so far). A note without
// bytes is an upload that was published or ended. The ticket's id names both files, so a
// ticket creates one upload, also after a restart and on another proxy.
type upload struct {
	Claims  ticket.Claims
	Ended   bool // the client ended it
	Created time.Time
	// Modified is the modification time that the client sent; nil: the time of arrival.
	Modified *time.Time `json:",omitempty"`
	// Match is the entity tag that the replaced file must have; empty: any file, or none, can
	// be there.
	Match string `json:",omitempty"`
	// Checkpoint is set for a staged file that Resume can continue.
	Checkpoint *checkpoint `json:"Kept,omitempty"`

	id        string
	noParents bool // a staged file whose directory must exist
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

// lockedUpload is an upload that the current request has locked.
type lockedUpload struct {
	*upload
	staging *volume.Staging
	file    *os.File // nil after publishing
	offset  int64    // bytes on disk

	attributes volume.Attributes
	wrote      func() // called with each write; records the size
	deadline   *deadlines
	release    func()
}

func errTaken() error {
	return fmt.Errorf("another request has taken over the upload: %w", errdefs.ErrConflict)
}

// lockUpload finds an upload by ID, checks that the ticket is for it, and takes over its lock.
func (s *Server) lockUpload(w http.ResponseWriter, r *http.Request, id string) (*lockedUpload, error) {
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
	x := &lockedUpload{upload: &upload{id: id}, staging: st, deadline: w.(*exchange).deadline}
	if x.release, err = s.locks.take(r.Context(), id, func() { x.deadline.end(errTaken()) }); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if err := x.waitForLock(r.Context(), c); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// errLockedElsewhere reports that another process has locked the upload. The process may be
// stopping.
var errLockedElsewhere = fmt.Errorf("the upload is locked by another proxy: %w", errdefs.ErrConflict)

// waitForLock opens the upload. If another proxy has it, it waits until that one releases it.
func (x *lockedUpload) waitForLock(ctx context.Context, c ticket.Claims) error {
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		err := x.open(c)
		if !errors.Is(err, errLockedElsewhere) {
			return err
		}
		select {
		case <-ctx.Done():
			if cause := x.deadline.endCause(); cause != nil {
				return cause
			}
			return err
		case <-time.After(50 * time.Millisecond):
		}
		x.file.Close() // nothing was written; the next attempt may find the upload published
		x.file = nil
	}
}

// open reads the note and the size of the received bytes.
func (x *lockedUpload) open(c ticket.Claims) error {
	u, err := readUpload(x.staging, x.id)
	if errdefs.IsNotFound(err) || err == nil && !u.sameFile(c) {
		return notFound("upload %s", x.id) // the same error as for uploads of other users
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
		return errLockedElsewhere
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

func (x *lockedUpload) close() {
	if x.file != nil {
		x.file.Close() // Sync has returned the errors of written bytes
	}
	x.staging.Close()
	x.release()
}

// moveIntoFolder makes a complete upload visible in its folder. Network file systems report a
// full disk only at fsync or close, so both are checked first.
func (x *lockedUpload) moveIntoFolder(v *volume.Volume) error {
	if err := x.finalize(); err != nil {
		return err
	}
	f, err := v.Folder(x.Claims.Scope, x.Claims.Folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Publish(x.staging, x.part(), x.Claims.Path, volume.Placing{Replace: true, Parents: !x.noParents})
}

// finalize sets the attributes of the file, syncs it and closes it.
func (x *lockedUpload) finalize() error {
	if x.attributes.Mode == nil {
		mode := uint32(foldergroup.File) // independent of the umask
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
		// A second attempt would see no error, and a hole in place of the lost bytes.
		err = errors.Join(err, x.file.Truncate(0))
	}
	if err := errors.Join(err, x.file.Close()); err != nil {
		x.file = nil
		return written(err)
	}
	x.file = nil
	return nil
}

// errLimit reports a limit that a product enforces itself.
var errLimit = fmt.Errorf("the scope's limit is reached: %w", problem.ErrNoSpace)

// written adds the error class to an error of writing bytes.
func written(err error) error {
	if errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("write upload: %w", errLimit)
	}
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("write upload: no space is left: %w", problem.ErrNoSpace)
	}
	return fmt.Errorf("write upload: %w", err)
}

// takeover is how long a new request waits until the request that has locked an upload has
// saved its bytes and released the lock.
const takeover = 5 * time.Second

// locks gives each upload to one request at a time. A new request ends the older one, which is
// most likely a connection that the client has given up. Between proxies on one volume,
// flock(2) on the staging file serializes requests, but does not end them: a new request waits
// up to the same time.
type locks struct {
	mu   sync.Mutex
	held map[string]*holder
}

type holder struct {
	end  func()        // asks the holder to release the lock
	gone chan struct{} // closed after the release
}

// take locks the upload for the caller. The function end is called when another request wants the
// upload.
func (l *locks) take(ctx context.Context, id string, end func()) (release func(), err error) {
	mine := &holder{end: end, gone: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		l.mu.Lock()
		if l.held == nil {
			l.held = make(map[string]*holder)
		}
		other := l.held[id]
		if other == nil {
			l.held[id] = mine
		} else {
			other.end() // under the mutex, because later its connection may serve another request
		}
		l.mu.Unlock()
		if other == nil {
			return func() {
				l.mu.Lock()
				delete(l.held, id)
				l.mu.Unlock()
				close(mine.gone)
			}, nil
		}
		select {
		case <-other.gone:
		case <-ctx.Done():
			return nil, fmt.Errorf("the upload is locked by another request: %w", errdefs.ErrConflict)
		}
	}
}
