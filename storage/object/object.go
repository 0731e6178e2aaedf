// Package object moves bytes between folders and S3 object storages, with requests that the
// manager has signed. Only the storage proxy imports it.
package object

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
)

const (
	// atOnce is the number of items of one call that move concurrently.
	atOnce = 4
	// keepEvery is the number of bytes between two checkpoints of a download. After a restart
	// of the proxy, a smaller object is downloaded again from its beginning.
	keepEvery = 64 << 20
)

// Mover imports and exports. New creates one.
type Mover struct {
	files     *transfer.Server
	client    *http.Client
	keepEvery int64
}

// New returns a Mover that writes files through the given server.
func New(files *transfer.Server, policy *egress.Policy) *Mover {
	return &Mover{files: files, keepEvery: keepEvery, client: &http.Client{
		Transport: policy.Transport(egress.Public),
		// A signature is valid for one address only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Work is the progress of one running call.
type Work struct {
	bytes atomic.Int64
	moved chan struct{}

	mu      sync.Mutex
	results []*storagepb.ObjectResult
}

// NewWork returns a Work without progress.
func NewWork() *Work { return &Work{moved: make(chan struct{}, 1)} }

// Moved receives a value when items have finished since the last receive.
func (w *Work) Moved() <-chan struct{} { return w.moved }

// Progress returns the progress, and the results since the last call of Progress.
func (w *Work) Progress(finished bool) *storagepb.ObjectProgress {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &storagepb.ObjectProgress{Bytes: w.bytes.Load(), Results: w.results, Finished: finished}
	w.results = nil
	return p
}

func (w *Work) finish(i int, r *storagepb.ObjectResult, err error) {
	r.Index = uint32(i)
	if err != nil {
		s := status.Convert(errgrpc.ToGRPC(classed(err)))
		r.Error, r.Code = s.Message(), uint32(s.Code())
	}
	w.mu.Lock()
	w.results = append(w.results, r)
	w.mu.Unlock()
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// classed adds the error class to an error of writing a file.
func classed(err error) error {
	if code, words := transfer.Status(err); code == http.StatusInsufficientStorage {
		return fmt.Errorf("%s: %w", words, errdefs.ErrResourceExhausted)
	}
	return err
}

// each moves every item of a call, several concurrently, until the context ends.
func (w *Work) each(ctx context.Context, n int, move func(i int) (*storagepb.ObjectResult, error)) error {
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range n {
		select {
		case <-ctx.Done():
		case turns <- struct{}{}:
			wg.Go(func() {
				defer func() { <-turns }()
				r, err := move(i)
				if ctx.Err() == nil {
					w.finish(i, r, err)
				}
			})
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
