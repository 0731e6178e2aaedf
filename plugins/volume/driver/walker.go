package driver

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

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
