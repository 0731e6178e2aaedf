package vfolder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

const copyKind = "vfolder.copy_files"

// copying is the input of a task that copies files.
type copying struct {
	From, To  uuid.UUID
	Items     []MoveFileItem
	Overwrite bool
}

// copied is the state of such a task: the paths that are complete.
type copied struct{ Done []string }

// CopyFiles copies files and directories in a task, within a folder or to another one whose
// volume is served by the same proxy.
func (s *Service) CopyFiles(ctx context.Context, in CopyFilesInput) (*VfolderTaskPayload, error) {
	from, err := s.copyable(ctx, in.Vfolder)
	if err != nil {
		return nil, err
	}
	to, err := s.target(ctx, in.Vfolder, in.ToVfolder)
	if err != nil {
		return nil, err
	}
	pairs, err := cleanItems(in.Items)
	if err != nil {
		return nil, err
	}
	if err := s.together(ctx, from.Edges.QuotaScope.Edges.Volume, to.Edges.QuotaScope.Edges.Volume, "toVfolder"); err != nil {
		return nil, err
	}
	wanted := copying{From: from.ID, To: to.ID, Overwrite: isTrue(in.Overwrite)}
	for _, p := range pairs {
		wanted.Items = append(wanted.Items, MoveFileItem{From: p.From, To: p.To})
	}
	title := fmt.Sprintf("Copy %s from folder %s to %s", counted(len(pairs), "item"), from.Name, to.Name)
	if from.ID == to.ID {
		title = fmt.Sprintf("Copy %s in folder %s", counted(len(pairs), "item"), from.Name)
	}
	out := &VfolderTaskPayload{}
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		out.Task, err = s.Tasks.Enqueue(ctx, tx, tasks.Wanted{
			Kind: copyKind, Title: title, Input: wanted, Subject: to.ID, Domain: to.DomainID,
		})
		return err
	})
	return s.enqueued(ctx, to.ID, out, err)
}

// copier runs the tasks that copy files.
type copier struct{ *Service }

func (c copier) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	var in copying
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	from, err := c.readable(ctx, at.By(), in.From)
	if err != nil {
		return err
	}
	if err := c.kept(ctx, Use{User: at.By(), Folder: in.To, Write: true}, "the folder it is copied to"); err != nil {
		return err
	}
	to, err := c.whole(ctx, in.To)
	if err != nil {
		return err
	}
	vol := to.Edges.QuotaScope.Edges.Volume.Name
	p, err := c.reach(from.Edges.QuotaScope.Edges.Volume.Name, vol)
	if err != nil {
		return later(vol, err)
	}
	failed, err := c.copy(ctx, p, &storagepb.TransferRequest{
		From: folderRef(from), To: folderRef(to), Files: filePairs(in.Items), Overwrite: in.Overwrite,
	}, at)
	if err != nil {
		return later(vol, err)
	}
	c.changed(ctx, to.ID)
	if n := len(failed); n > 0 {
		return problem.Precondition("%d of %s could not be copied; %s: %s", n, counted(len(in.Items), "item"), failed[0].Path, messageOf(failed[0]))
	}
	return nil
}

// copy runs the call and returns the failures. A target that an earlier run of the task has
// written is not a failure.
func (c copier) copy(ctx context.Context, p *proxy, call *storagepb.TransferRequest, at *tasks.Progress) (failed []*storagepb.FileResult, err error) {
	var state copied
	if err := at.State(&state); err != nil {
		return nil, err
	}
	before := slices.Clone(state.Done)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := p.rpc.CopyFiles(ctx, call)
	if err != nil {
		return nil, errgrpc.ToNative(err)
	}
	err = follow(ctx, stream, at, func(results []*storagepb.FileResult) any {
		for _, r := range results {
			switch {
			case r.Error == "" || at.Again() && arrived(ctx, p, call, r):
				state.Done = append(state.Done, r.Path)
			case !slices.Contains(before, r.Path):
				failed = append(failed, r)
			}
		}
		return state
	})
	return failed, err
}

// arrived reports whether the existing target of an item is its own copy, written by an
// earlier run whose result was not saved: a copy has the modes and times of its original.
func arrived(ctx context.Context, p *proxy, call *storagepb.TransferRequest, r *storagepb.FileResult) bool {
	i := slices.IndexFunc(call.Files, func(f *storagepb.FilePair) bool { return f.From == r.Path })
	if i < 0 || codes.Code(r.Code) != codes.AlreadyExists {
		return false
	}
	from, err := p.rpc.StatFile(ctx, &storagepb.FileRef{Folder: call.From, Path: call.Files[i].From})
	if err != nil {
		return false
	}
	to, err := p.rpc.StatFile(ctx, &storagepb.FileRef{Folder: call.To, Path: call.Files[i].To})
	if err != nil {
		return false
	}
	if from.Type == storagepb.FileInfo_DIRECTORY {
		from.Size = to.Size // file systems compute the sizes of directories
	}
	return from.Type == to.Type && from.Size == to.Size && from.Mode == to.Mode && from.ModifiedUnixMs == to.ModifiedUnixMs
}

func filePairs(items []MoveFileItem) []*storagepb.FilePair {
	pairs := make([]*storagepb.FilePair, len(items))
	for i, item := range items {
		pairs[i] = &storagepb.FilePair{From: item.From, To: item.To}
	}
	return pairs
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isTrue(b *bool) bool { return b != nil && *b }
