package storage

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/storage/object"
	"github.com/berthhq/berth/storage/sshd"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/view"
	"github.com/berthhq/berth/storage/volume"
)

// newViews creates the views of folders on the volumes.
func newViews(cfg Config, set *volume.Set, data *transfer.Server, node *cluster.Node) (*view.Views, error) {
	u, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("storage: public URL: %w", err)
	}
	manager := cfg.Manager
	if manager == nil {
		manager = managers{node}
	}
	return view.New(view.Config{
		Volumes: set, Transfers: data, Manager: manager, Dir: cfg.Dir, Prefix: strings.TrimSuffix(u.Path, "/") + view.Path, Logger: cfg.Logger,
	}), nil
}

// newSFTP creates the SSH server for SFTP, or returns nil if SFTP is disabled.
func newSFTP(cfg Config, views *view.Views, log *slog.Logger) (*sshd.Server, error) {
	if cfg.SFTP == nil {
		return nil, nil
	}
	d, err := sshd.New(sshd.Config{Dir: cfg.Dir, Password: views.LoginWithToken, Key: views.LoginWithKey, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("storage: SFTP: %w", err)
	}
	return d, nil
}

// managers calls the managers of the cluster.
type managers struct{ node *cluster.Node }

// List returns the folders that an access token or key gives access to.
func (m managers) List(ctx context.Context, q *storagepb.ListRequest) (*storagepb.ListResponse, error) {
	return inTurn(ctx, m.node, q, storagepb.FoldersClient.List)
}

// Record sends file activity to the audit log.
func (m managers) Record(ctx context.Context, q *storagepb.RecordRequest) (*storagepb.RecordResponse, error) {
	return inTurn(ctx, m.node, q, storagepb.FoldersClient.Record)
}

// inTurn calls the managers one after the other until one answers.
func inTurn[Q, R any](ctx context.Context, n *cluster.Node, q Q, call func(storagepb.FoldersClient, context.Context, Q, ...grpc.CallOption) (R, error)) (r R, err error) {
	err = fmt.Errorf("no manager is connected: %w", errdefs.ErrUnavailable)
	if n == nil {
		return r, err
	}
	for _, c := range n.Clients() {
		if r, err = call(storagepb.NewFoldersClient(c), ctx, q); err == nil {
			return r, nil
		}
		if err = errgrpc.ToNative(err); errdefs.IsUnauthorized(err) {
			break
		}
	}
	return r, err
}

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
