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

// saveEvery bounds how often a task writes how far it is.
const saveEvery = 500 * time.Millisecond

// follow waits for a long call to end, and saves how far it is: bytes where bytes are
// to be copied, files otherwise. settled, if any, takes the results of paths and
// returns the state to continue with.
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

// later makes of a proxy's error, a native one, what a task does about it: it waits for a proxy that
// is away, and for work that is under way already.
func later(volume string, err error) error {
	switch {
	case errdefs.IsUnavailable(err):
		return tasks.Wait("a storage proxy that serves volume %s", volume)
	case errdefs.IsAborted(err):
		return tasks.Wait("other work on the folder to end")
	}
	return err
}
