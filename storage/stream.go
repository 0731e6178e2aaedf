package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

// progressEvery is the longest pause between two progress messages of a long call.
const progressEvery = 500 * time.Millisecond

// errStopping ends long calls when the proxy stops. The caller can continue them later, which
// sets it apart from a cancelled call.
var errStopping = fmt.Errorf("the proxy stops: %w", errdefs.ErrUnavailable)

// results collects the results of paths until the next message is sent.
type results struct {
	mu   sync.Mutex
	list []*storagepb.FileResult
}

func (r *results) add(one *storagepb.FileResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, one)
}

func (r *results) take() []*storagepb.FileResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// long runs a call that can take hours and streams its progress. It returns after the work has
// ended.
func (s *service) long(out grpc.ServerStreamingServer[storagepb.Progress], work func(context.Context, *volume.Meter, *results) error) error {
	m, done := volume.NewMeter(), &results{}
	message := func(last bool) *storagepb.Progress { return progress(m, done, last) }
	return attend(s, out, m.Moved(), message, func(ctx context.Context) error { return work(ctx, m, done) })
}

// attend runs the work of a call. It sends progress when much has changed, at intervals, and
// at the end.
func attend[T any](s *service, out grpc.ServerStreamingServer[T], moved <-chan struct{}, message func(last bool) *T, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(out.Context()))
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()

	ticks := time.NewTicker(progressEvery)
	defer ticks.Stop()
	end := func(cause error) error {
		cancel(cause)
		<-done
		return cause
	}
	for {
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			return out.Send(message(true))
		case <-moved:
		case <-ticks.C:
		case <-s.stopping:
			return end(errStopping)
		case <-out.Context().Done():
			select {
			case <-s.stopping: // the connections end with the proxy
				return end(errStopping)
			default:
				return end(context.Canceled) // the caller has cancelled, or the deadline has passed
			}
		}
		if err := out.Send(message(false)); err != nil && !errors.Is(out.Context().Err(), context.Canceled) {
			return end(err)
		}
	}
}

func progress(m *volume.Meter, done *results, last bool) *storagepb.Progress {
	p := m.Read()
	if last {
		p.FilesTotal, p.BytesTotal = p.Files, p.Bytes
	}
	return &storagepb.Progress{
		Files: p.Files, FilesTotal: p.FilesTotal, Bytes: p.Bytes, BytesTotal: p.BytesTotal, Results: done.take(), Finished: last,
	}
}
