package objectstorage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/manager/vfolder"
	"github.com/berthhq/berth/storage/storagepb"
)

const (
	saveEvery = 500 * time.Millisecond
	// Limits of one call to a proxy; they determine the validity of its signed requests.
	batchSize  = 100
	batchBytes = 8 << 30
	// maxUnreachable is how long a storage can be unreachable before its task fails.
	maxUnreachable = time.Hour
)

// run is one run of a task.
type run struct {
	*Service
	moving
	at     *tasks.Progress
	st     state
	row    *ent.ObjectStorage
	bucket *bucket
	prefix string // prefix of the keys
	write  bool   // the task writes to the folder
	base   int64  // bytes of an unfinished file, from earlier calls
	saved  time.Time
}

// begin reads the input and the state of a task. Even with an error it can return a run, to
// abort what was begun.
func (s *Service) begin(ctx context.Context, at *tasks.Progress, input []byte, write bool) (*run, error) {
	r := &run{Service: s, at: at, write: write}
	if err := json.Unmarshal(input, &r.moving); err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if err := at.State(&r.st); err != nil {
		return nil, err
	}
	if r.st.Ended {
		r.st.again()
	}
	err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if r.bucket, err = s.open(ctx, r.row, inTask); err != nil {
		return nil, err
	}
	r.prefix = r.row.Prefix
	if r.Below != "" {
		r.prefix += r.Below + "/"
	}
	_, err = r.place(ctx)
	return r, err
}

// read reads the current row of the storage.
func (r *run) read(ctx context.Context) error {
	row, err := r.client.ObjectStorage.Get(ctx, r.Storage)
	if ent.IsNotFound(err) {
		return problem.Precondition("the object storage was deleted")
	}
	if err != nil {
		return fmt.Errorf("read object storage: %w", err)
	}
	r.row = row
	return nil
}

// place returns the folder's proxy. It checks again that the user of the task can use the
// folder and the storage.
func (r *run) place(ctx context.Context) (*vfolder.At, error) {
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	who, err := r.folders.User(ctx, r.at.By())
	if err != nil {
		return nil, err
	}
	if e, on, _ := permit.Of(r.row); !who.May(access.Transfer, e, on) || !r.write && r.row.ReadOnly {
		return nil, problem.Precondition("the user of the task can no longer use the object storage")
	}
	return r.folders.At(ctx, vfolder.Use{User: r.at.By(), Folder: r.Folder, Write: r.write})
}

// save stores the progress, at intervals or at once.
func (r *run) save(ctx context.Context, now bool, moving int64) error {
	if !now && time.Since(r.saved) < saveEvery {
		return nil
	}
	done, total := min(r.st.Bytes+moving, r.st.BytesTotal), r.st.BytesTotal
	if total == 0 {
		done, total = r.st.Files, r.st.FilesTotal
	}
	if err := r.at.Save(ctx, r.st, max(done, 0), total); err != nil {
		return err
	}
	r.saved = time.Now()
	return nil
}

// end converts the error of a run to the error of its task: the task waits for a storage that
// does not answer.
func (r *run) end(ctx context.Context, err error) error {
	var away *storageAway
	if !errors.As(err, &away) {
		return err
	}
	if r.st.Stuck == nil {
		t := time.Now()
		r.st.Stuck = &t
	}
	since := *r.st.Stuck
	if time.Since(since) > maxUnreachable {
		r.st.Stuck = nil // a new attempt waits as long again
	}
	if err := r.save(ctx, true, 0); err != nil {
		return err
	}
	p, _ := problem.From(away.error)
	if time.Since(since) > maxUnreachable {
		return problem.Precondition("the object storage has not answered since %s: %s", since.UTC().Format(time.RFC3339), p.Message)
	}
	return tasks.Wait("the object storage: %s", p.Message)
}

// storageAway reports that a storage does not answer, as opposed to a proxy.
type storageAway struct{ error }

func (s *storageAway) Unwrap() error { return s.error }

// asked marks errors of requests to a storage.
func asked(err error) error {
	if p, known := problem.From(err); known && p.Code == problem.CodeUnavailable {
		return &storageAway{err}
	}
	return err
}

// receiver is a call to a proxy.
type receiver = grpc.ServerStreamingClient[storagepb.ObjectProgress]

// follow receives the results of a call. settled decides about an item's error: an error that
// it returns ends the call.
func (r *run) follow(ctx context.Context, at *vfolder.At, call func(context.Context) (receiver, error), settled func(*storagepb.ObjectResult, error) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := call(ctx)
	if err != nil {
		return at.Later(errgrpc.ToNative(err))
	}
	before := r.st.Bytes
	for {
		p, err := stream.Recv()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return at.Later(fmt.Errorf("the call ended early: %w", errdefs.ErrUnavailable))
		case err != nil:
			return at.Later(errgrpc.ToNative(err))
		}
		for _, one := range p.Results {
			if err := r.result(one, settled); err != nil {
				if failed := r.save(ctx, true, 0); failed != nil {
					return failed
				}
				return err
			}
		}
		if err := r.save(ctx, p.Finished, r.base+max(p.Bytes-(r.st.Bytes-before), 0)); err != nil {
			return err
		}
		if p.Finished {
			return nil
		}
	}
}

// result handles the result of an item, unless its error concerns all items.
func (r *run) result(one *storagepb.ObjectResult, settled func(*storagepb.ObjectResult, error) error) error {
	err := errgrpc.ToNative((&storagepb.FileResult{Error: one.Error, Code: one.Code}).Err())
	switch {
	case errdefs.IsUnavailable(err):
		return &storageAway{problem.Unavailable("%s", one.Error)}
	case errdefs.IsResourceExhausted(err):
		p, _ := problem.From(err)
		return problem.Precondition("the folder is full: %s", p.Message)
	}
	return settled(one, err)
}
