package vfolder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"

	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

// saveEvery is the shortest pause between two writes of a task's progress.
const saveEvery = 500 * time.Millisecond

// follow waits for a long call to end and saves its progress: bytes if the call copies bytes,
// files otherwise. The function settled, if not nil, receives the results of paths and returns
// the state to continue from.
func follow(ctx context.Context, stream grpc.ServerStreamingClient[storagepb.Progress], at *tasks.Progress, settled func([]*storagepb.FileResult) any) error {
	var saved time.Time
	for {
		p, err := stream.Recv()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return errgrpc.ToNative(err)
		}
		if err != nil {
			return fmt.Errorf("the call ended early: %w", errdefs.ErrUnavailable)
		}
		var state any
		if settled != nil {
			state = settled(p.Results)
		}
		if p.Finished || len(p.Results) > 0 || time.Since(saved) >= saveEvery {
			done, total := p.Files, p.FilesTotal
			if p.BytesTotal > 0 {
				done, total = p.Bytes, p.BytesTotal
			}
			if err := at.Save(ctx, state, done, total); err != nil {
				return err
			}
			saved = time.Now()
		}
		if p.Finished {
			return nil
		}
	}
}

// later converts an error of a proxy to the error of a task: the task waits while the proxy is
// not connected, and while the same work is already running.
func later(volume string, err error) error {
	switch {
	case errdefs.IsUnavailable(err):
		return tasks.Wait("a storage proxy that serves volume %s", volume)
	case errdefs.IsAborted(err):
		return tasks.Wait("other work on the folder to end")
	}
	return err
}
