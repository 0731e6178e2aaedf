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

// Place is where a file goes, on whose behalf.
type Place struct {
	User, Volume, Scope, Folder, Path string
	// Parents has missing directories made when the file is published.
	Parents bool
}

// Draft is a file that is written in the staging directory, in any order, and
// appears in its folder in one step. Unlike an upload it does not outlive who
// writes it, but where Resume began it: what a crash leaves behind is swept.
type Draft struct {
	server  *Server
	volume  *volume.Volume
	staging *volume.Staging // nil where a file of the folder itself is written to
	upload  *upload
	file    *os.File
	there   int64 // what was there before

	mu       sync.Mutex
	set      volume.Attributes
	end      int64 // of what was written
	reserved int64
	failed   error // of a write: what is there is not the file
	done     bool
}

const (
	// step is how much a draft of unknown size reserves at once.
	step     = 16 << 20
	maxDraft = 1 << 44 // 16 TiB, as an upload's
)

// Draft begins a file. A size that is known is reserved at once, else it is 0.
// The caller ends with Publish or Discard.
func (s *Server) Draft(ctx context.Context, at Place, size int64) (*Draft, error) {
	d, err := s.newDraft(at)
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

// newDraft is one for a new file, which has no bytes yet.
func (s *Server) newDraft(at Place) (*Draft, error) {
	c := ticket.Claims{Operation: ticket.Upload, Volume: at.Volume, Scope: at.Scope, Folder: at.Folder, Path: at.Path, User: at.User}
	v, err := s.cfg.Volumes.Get(c.Volume)
	if err != nil {
		return nil, err
	}
	if err := checkTarget(v, c); err != nil {
		return nil, err
	}
	d := s.draftOf(v, c)
	d.upload.noParents = !at.Parents
	return d, nil
}

func (s *Server) draftOf(v *volume.Volume, c ticket.Claims) *Draft {
	name := uuid.New()
	return &Draft{server: s, volume: v, upload: &upload{Claims: c, id: hex.EncodeToString(name[:])}}
}

// reserve makes sure of the room up to an offset.
func (d *Draft) reserve(ctx context.Context, end int64) error {
	if end > maxDraft {
		return problem.TooLarge("Content-Length", maxDraft)
	}
	if end <= d.reserved {
		return nil
	}
	if err := admit(ctx, d.volume, d.upload.Claims.Scope, volume.Room{Writer: d.upload.id, Size: end, There: d.there}, end-d.reserved); err != nil {
		return err
	}
	d.reserved = end
	return nil
}

// WriteAt writes some of the file. Once a write has failed the draft can only be
// discarded.
func (d *Draft) WriteAt(p []byte, at int64) (int, error) {
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

func (d *Draft) room(end int64) error {
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

// ReadAt reads what was written.
func (d *Draft) ReadAt(p []byte, at int64) (int, error) { return d.file.ReadAt(p, at) }

// Truncate makes the file as long as that.
func (d *Draft) Truncate(size int64) error {
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

// Set notes the attributes that the file is to have when it is published.
func (d *Draft) Set(a volume.Attributes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.Mode != nil {
		d.set.Mode = a.Mode
	}
	if a.Modified != nil {
		d.set.Modified = a.Modified
	}
}

// Stat tells the size and the time of what is there, which publishing keeps.
func (d *Draft) Stat() (os.FileInfo, error) { return d.file.Stat() }

// Size is how much there is.
func (d *Draft) Size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end
}

// Condition looks at what a file would replace, nil for nothing, and refuses to.
type Condition func(there *volume.Entry) error

// Publish makes the file visible at its place. What was there is replaced if the
// condition, nil for none, agrees.
func (d *Draft) Publish(when Condition) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return fmt.Errorf("publish: is over: %w", errdefs.ErrFailedPrecondition)
	}
	if d.failed != nil {
		d.discard()
		return d.failed
	}
	d.upload.Claims.Size = d.end - d.there
	if d.upload.Kept != nil { // no one takes it over before it is at its place
		lock, err := unix.FcntlInt(d.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		defer unix.Close(lock)
	}
	x := &session{upload: d.upload, staging: d.staging, file: d.file, attributes: d.set}
	if err := d.publish(x, when); err != nil {
		d.discard()
		return d.server.explain(d.upload.Claims, err)
	}
	d.volume.Stays(d.upload.Claims.Scope, d.upload.id, d.end)
	d.done = true
	if d.staging == nil {
		return nil
	}
	d.unnote()
	return d.staging.Close()
}

func (d *Draft) publish(x *session, when Condition) error {
	switch {
	case d.staging == nil:
		return d.keep(x)
	case when == nil:
		return x.publish(d.volume)
	}
	return d.server.publishIf(d.volume, x, when)
}

// publishIf makes a complete upload visible if the condition agrees with what it would
// replace.
func (s *Server) publishIf(v *volume.Volume, x *session, when Condition) error {
	if err := x.settle(); err != nil {
		return err
	}
	f, err := v.Folder(x.Claims.Scope, x.Claims.Folder)
	if err != nil {
		return err
	}
	defer f.Close()
	// No one who goes by a condition comes between the look and the step; a file that
	// others make meanwhile is not replaced but looked at in its turn.
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

// Discard forgets the file, unless it is published.
func (d *Draft) Discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.discard()
}

func (d *Draft) discard() {
	if d.done {
		return
	}
	d.done = true
	defer d.file.Close() // nothing of it is wanted, or publishing closed it; others may want its lock
	if d.staging == nil {
		d.volume.Stays(d.upload.Claims.Scope, d.upload.id, d.end)
		return
	}
	d.volume.Withdraw(d.upload.Claims.Scope, d.upload.id)
	d.unnote()
	if err := d.staging.Remove(d.upload.part()); err != nil {
		d.server.log.Warn("discard a draft", "error", err)
	}
	d.staging.Close()
}

// unnote forgets where Resume would have gone on.
func (d *Draft) unnote() {
	if d.upload.Kept == nil {
		return
	}
	if err := d.staging.Remove(d.upload.note()); err != nil { // it is swept
		d.server.log.Warn("forget a draft", "error", err)
	}
}
