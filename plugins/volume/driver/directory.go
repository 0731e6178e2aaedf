package driver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Directory is a Volume of plain directories on any file system. The usage is measured by walking,
// and only the proxy enforces limits, by refusing uploads. A vendor embeds Directory and replaces
// methods that the product implements better.
type Directory struct {
	*Mount
	*Walker
}

// NewDirectory returns the volume. The usage of a scope is measured again after maxAge.
func NewDirectory(m *Mount, maxAge time.Duration) *Directory {
	return &Directory{Mount: m, Walker: NewWalker(m, maxAge)}
}

// Traits implements Volume.
func (d *Directory) Traits() Traits { return Traits{Enforcement: pb.Enforcement_COOPERATIVE} }

// CreateScope implements Volume. It writes the limit first, so that a crash before the scope exists
// leaves only a limit, which the next attempt replaces.
func (d *Directory) CreateScope(_ context.Context, scope string, limit *pb.Limit) error {
	if err := d.writeLimit(scope, limit); err != nil {
		return err
	}
	return d.MakeScope(scope)
}

// GetScope implements Volume.
func (d *Directory) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	f, err := d.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &pb.Scope{}
	if out.Limit, err = d.readLimit(scope); err != nil {
		return nil, err
	}
	d.Fill(ctx, out, scope)
	return out, nil
}

// SetScopeLimit implements Volume.
func (d *Directory) SetScopeLimit(_ context.Context, scope string, limit *pb.Limit) error {
	f, err := d.OpenTree(scope)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.writeLimit(scope, limit)
}

// DeleteScope implements Volume.
func (d *Directory) DeleteScope(_ context.Context, scope string) error {
	if err := d.RemoveScope(scope); err != nil {
		return err
	}
	d.Forget(scope)
	return d.removeLimit(scope)
}

// Close implements Volume.
func (d *Directory) Close() error { return d.Walker.Close() }

// limitsDir contains the limits of scopes. It is beside the scopes and unreachable for users,
// because containers mount folders inside a scope.
const limitsDir = Own + "/scope"

// limits is the content of a scope's file; absent = no limit.
type limits struct {
	Bytes *int64 `json:"bytes,omitempty"`
}

func (m *Mount) readLimit(scope string) (*pb.Limit, error) {
	root, err := m.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openAt(root, path.Join(limitsDir, scope), unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		return &pb.Limit{}, nil
	}
	if err != nil {
		return nil, Error("read limit", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return nil, Error("read limit", err)
	}
	var l limits
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, status.Errorf(codes.DataLoss, "limit of scope %s: %v", scope, err)
	}
	return &pb.Limit{Bytes: l.Bytes}, nil
}

// writeLimit replaces the limit atomically and durably.
func (m *Mount) writeLimit(scope string, limit *pb.Limit) error {
	raw, err := json.Marshal(limits{Bytes: limit.Bytes})
	if err != nil {
		return err
	}
	return m.inLimits(func(d *os.File) error {
		f, err := create(d, scope+".new")
		if err != nil {
			return err
		}
		_, err = f.Write(raw)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		return unix.Renameat(int(d.Fd()), scope+".new", int(d.Fd()), scope)
	})
}

func (m *Mount) removeLimit(scope string) error {
	return m.inLimits(func(d *os.File) error {
		if err := unix.Unlinkat(int(d.Fd()), scope, 0); !errors.Is(err, unix.ENOENT) {
			return err
		}
		return nil
	})
}

func (m *Mount) inLimits(f func(d *os.File) error) error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := makeAt(root, limitsDir)
	if err != nil {
		return Error("limit", err)
	}
	defer d.Close()
	return Error("limit", f(d))
}

// timeout is how long a call waits for a walk that it started; it is enough for about 50,000 files.
// After that it returns the previous usage, or none, and the walk continues for the next caller.
const timeout = 250 * time.Millisecond

// Walker measures scopes by walking them, for products that do not report the size of a directory.
// Create it with NewWalker; the volume's Close must close it.
type Walker struct {
	mount  *Mount
	maxAge time.Duration

	ctx    context.Context // of the walks
	cancel context.CancelFunc
	walks  sync.WaitGroup
	mu     sync.Mutex
	usage  map[string]*usage
}

// usage is the last measurement of a scope and the running walk, if any.
type usage struct {
	last    *pb.TreeUsageReport
	at      time.Time
	walking chan struct{} // nil when idle; closed at the end
}

// NewWalker returns a Walker that measures a scope again after maxAge.
func NewWalker(m *Mount, maxAge time.Duration) *Walker {
	ctx, cancel := context.WithCancel(context.Background())
	return &Walker{mount: m, maxAge: maxAge, ctx: ctx, cancel: cancel, usage: make(map[string]*usage)}
}

// Fill sets the usage of a scope if it is known.
func (w *Walker) Fill(ctx context.Context, s *pb.Scope, scope string) {
	u := w.Measure(ctx, scope)
	if u == nil {
		return
	}
	inodes := u.Files + u.Directories
	s.UsedBytes, s.UsedInodes, s.Exact, s.AsOfUnixMs = &u.Bytes, &inodes, u.Exact, u.AsOfUnixMs
}

// Measure returns the usage of a scope: exact if it is recent, marked as not exact while a long
// walk is running, and nil before the first one has ended.
func (w *Walker) Measure(ctx context.Context, scope string) *pb.TreeUsageReport {
	w.mu.Lock()
	u := w.usage[scope]
	if u == nil {
		u = &usage{}
		w.usage[scope] = u
	}
	if u.last != nil && time.Since(u.at) < w.maxAge {
		defer w.mu.Unlock()
		return proto.CloneOf(u.last)
	}
	if u.walking == nil && w.ctx.Err() == nil {
		u.walking = make(chan struct{})
		w.walks.Go(func() { w.walk(scope, u) })
	}
	walking := u.walking
	w.mu.Unlock()

	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-walking:
	case <-wait.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.last == nil {
		return nil
	}
	out := proto.CloneOf(u.last)
	out.Exact = out.Exact && u.walking == nil
	return out
}

func (w *Walker) walk(scope string, u *usage) {
	started := time.Now()
	report, err := w.look(scope)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		u.last, u.at = report, started
	}
	close(u.walking)
	u.walking = nil
	if is(err, codes.NotFound) {
		delete(w.usage, scope)
	}
}

func (w *Walker) look(scope string) (*pb.TreeUsageReport, error) {
	d, err := w.mount.OpenTree(scope)
	if err != nil {
		return nil, err
	}
	return volume.UsageAt(w.ctx, d)
}

// Forget removes the stored usage of a deleted scope.
func (w *Walker) Forget(scope string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.usage, scope)
}

// Close cancels the walks and waits for them.
func (w *Walker) Close() error {
	w.mu.Lock()
	w.cancel() // under the lock: no walk starts after it
	w.mu.Unlock()
	w.walks.Wait()
	return nil
}
