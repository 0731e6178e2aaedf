package storage

import (
	"context"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/storage/object"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

// objects serves the control calls that copy files to and from object storages.
type objects struct {
	storagepb.UnimplementedObjectsServer
	*service
	mover *object.Mover
}

func (o *objects) Import(q *storagepb.ImportRequest, out grpc.ServerStreamingServer[storagepb.ObjectProgress]) error {
	return o.move(q.Folder, "objects", len(q.Objects), out, func(ctx context.Context, w *object.Work, f *volume.Folder) error {
		return o.mover.Import(ctx, w, f, q)
	})
}

func (o *objects) Export(q *storagepb.ExportRequest, out grpc.ServerStreamingServer[storagepb.ObjectProgress]) error {
	return o.move(q.Folder, "files", len(q.Files), out, func(ctx context.Context, w *object.Work, f *volume.Folder) error {
		return o.mover.Export(ctx, w, f, q)
	})
}

func (o *objects) move(at *storagepb.FolderRef, field string, n int, out grpc.ServerStreamingServer[storagepb.ObjectProgress], work func(context.Context, *object.Work, *volume.Folder) error) error {
	if err := checkPaths(field, n); err != nil {
		return err
	}
	f, err := o.folder(at)
	if err != nil {
		return err
	}
	defer f.Close()
	w := object.NewWork()
	return attend(o.service, out, w.Moved(), w.Progress, func(ctx context.Context) error { return work(ctx, w, f) })
}

func (o *objects) Tree(ctx context.Context, q *storagepb.TreeRequest) (*storagepb.TreeResponse, error) {
	return in(o.service, q.Folder, func(f *volume.Folder) (*storagepb.TreeResponse, error) {
		files, more, err := f.Tree(ctx, q.Path, pageLimit(q.Limit), q.After)
		if err != nil {
			return nil, err
		}
		out := &storagepb.TreeResponse{More: more, Files: make([]*storagepb.TreeFile, len(files))}
		for i, e := range files {
			out.Files[i] = &storagepb.TreeFile{Path: text(e.Path), Size: e.Size, ModifiedUnixNs: e.Modified.UnixNano()}
		}
		return out, nil
	})
}
