package vfolder

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/storagepb"
)

// CreateDirectories creates directories and their missing parents, each with its own result.
func (s *Service) CreateDirectories(ctx context.Context, in CreateDirectoriesInput) (*FilesPayload, error) {
	f, p, paths, err := s.pathsOf(ctx, in.Vfolder, in.Paths)
	if err != nil {
		return nil, err
	}
	r, err := p.rpc.MakeDirectories(ctx, &storagepb.MakeDirectoriesRequest{Folder: folderRef(f), Paths: paths})
	return s.resultsInOrder(ctx, paths, r.GetResults(), err, f)
}

// DeleteFiles deletes files and, if recursive, directories, each with its own result.
func (s *Service) DeleteFiles(ctx context.Context, in DeleteFilesInput) (*FilesPayload, error) {
	f, p, paths, err := s.pathsOf(ctx, in.Vfolder, in.Paths)
	if err != nil {
		return nil, err
	}
	results, err := gathered(p.rpc.DeleteFiles(ctx, &storagepb.DeleteFilesRequest{
		Folder: folderRef(f), Paths: paths, Recursive: isTrue(in.Recursive),
	}))
	return s.resultsInOrder(ctx, paths, results, err, f)
}

// MoveFiles moves or renames files and directories, within a folder or to another one
// of the same volume, each with its own result.
func (s *Service) MoveFiles(ctx context.Context, in MoveFilesInput) (*FilesPayload, error) {
	from, err := s.writable(ctx, in.Vfolder)
	if err != nil {
		return nil, err
	}
	to, err := s.target(ctx, in.Vfolder, in.ToVfolder)
	if err != nil {
		return nil, err
	}
	if a, b := from.Edges.QuotaScope.Edges.Volume, to.Edges.QuotaScope.Edges.Volume; a.ID != b.ID {
		return nil, problem.Precondition("folder %s is on volume %s and folder %s on %s: copy the files, then delete them",
			from.Name, a.Name, to.Name, b.Name).WithField("toVfolder")
	}
	pairs, err := cleanItems(in.Items)
	if err != nil {
		return nil, err
	}
	p, err := s.reach(from.Edges.QuotaScope.Edges.Volume.Name)
	if err != nil {
		return nil, err
	}
	results, err := gathered(p.rpc.MoveFiles(ctx, &storagepb.TransferRequest{
		From: folderRef(from), To: folderRef(to), Files: pairs, Overwrite: isTrue(in.Overwrite),
	}))
	paths := make([]string, len(pairs))
	for i, pair := range pairs {
		paths[i] = pair.From
	}
	return s.resultsInOrder(ctx, paths, results, err, from, to)
}

// pathsOf checks the paths of a folder that the viewer wants to change, and returns the folder
// and its proxy.
func (s *Service) pathsOf(ctx context.Context, folder uuid.UUID, asked []string) (f *ent.Vfolder, p *proxy, paths []string, err error) {
	if len(asked) == 0 || len(asked) > maxUploads {
		return nil, nil, nil, problem.Invalid("paths", "has %d paths, which is too many", len(asked)).WithLimit("1..1000")
	}
	for i, one := range asked {
		clean, err := cleanPath(fmt.Sprintf("paths[%d]", i), one, false)
		if err != nil {
			return nil, nil, nil, err
		}
		paths = append(paths, clean)
	}
	if f, err = s.writable(ctx, folder); err != nil {
		return nil, nil, nil, err
	}
	p, err = s.reach(f.Edges.QuotaScope.Edges.Volume.Name)
	return f, p, paths, err
}

// target returns the folder that receives the files: the other folder, or the same one if no
// other is named.
func (s *Service) target(ctx context.Context, same uuid.UUID, other *uuid.UUID) (*ent.Vfolder, error) {
	if other == nil {
		return s.writable(ctx, same)
	}
	f, err := s.writable(ctx, *other)
	if errdefs.IsNotFound(err) {
		return nil, problem.NotFound("folder").WithField("toVfolder")
	}
	return f, err
}

// cleanItems checks the paths of a move or copy.
func cleanItems(items []MoveFileItem) ([]*storagepb.FilePair, error) {
	if len(items) == 0 || len(items) > maxUploads {
		return nil, problem.Invalid("items", "has %d items, which is too many", len(items)).WithLimit("1..1000")
	}
	pairs := make([]*storagepb.FilePair, len(items))
	for i, item := range items {
		from, err := cleanPath(fmt.Sprintf("items[%d].from", i), item.From, false)
		if err != nil {
			return nil, err
		}
		to, err := cleanPath(fmt.Sprintf("items[%d].to", i), item.To, false)
		if err != nil {
			return nil, err
		}
		pairs[i] = &storagepb.FilePair{From: from, To: to}
	}
	return pairs, nil
}

// gathered collects the results of a stream, or returns its error.
func gathered(stream grpc.ServerStreamingClient[storagepb.Progress], err error) (all []*storagepb.FileResult, _ error) {
	if err != nil {
		return nil, err
	}
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p.Results...)
	}
}

// resultsInOrder returns the results of a call in the order of the request.
func (s *Service) resultsInOrder(ctx context.Context, paths []string, results []*storagepb.FileResult, err error, changed ...*ent.Vfolder) (*FilesPayload, error) {
	if err != nil {
		return nil, errgrpc.ToNative(err)
	}
	of := map[string][]*storagepb.FileResult{}
	for _, r := range results {
		of[r.Path] = append(of[r.Path], r)
	}
	out := &FilesPayload{}
	for _, path := range paths {
		list := of[path]
		if len(list) == 0 {
			continue
		}
		of[path] = list[1:]
		one := FileResult{Path: path}
		if list[0].Error != "" {
			text := messageOf(list[0])
			one.Error = &text
		}
		out.Results = append(out.Results, one)
	}
	for _, f := range changed {
		s.changed(ctx, f.ID)
	}
	return out, nil
}

// messageOf returns the error message of a path without the error class, which has a field of its
// own.
func messageOf(r *storagepb.FileResult) string {
	if p, known := problem.From(errgrpc.ToNative(r.Err())); known {
		return p.Message
	}
	return r.Error
}

// copyable returns a folder whose files the viewer may copy to other folders.
func (s *Service) copyable(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	f, err := s.usable(ctx, id)
	if err != nil {
		return nil, err
	}
	return f, s.changeable(ctx, f, access.VolumeDownload, access.ReadFiles)
}
