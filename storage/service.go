package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// reportEvery is the longest pause between two messages of Watch.
const reportEvery = 10 * time.Second

// service serves the control calls of managers.
type service struct {
	storagepb.UnimplementedStorageServer
	p           *Proxy
	incarnation string
	stopping    chan struct{}
	once        sync.Once
	// learn receives the addresses of the managers; nil outside a cluster.
	learn func(managers ...string)
}

func newService(p *Proxy) *service {
	return &service{p: p, incarnation: uuid.NewString(), stopping: make(chan struct{})}
}

// stop ends the Watch streams.
func (s *service) stop() { s.once.Do(func() { close(s.stopping) }) }

func (s *service) Watch(q *storagepb.WatchRequest, out grpc.ServerStreamingServer[storagepb.Report]) error {
	leave, err := s.p.keys.join(q.TicketKeys)
	if err != nil {
		return err
	}
	defer leave()
	s.p.http.Revoke(revoked(q))
	s.p.views.Forget()
	if s.learn != nil {
		s.learn(q.Managers...)
	}
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	for {
		changed := s.p.set.Changed()
		if err := out.Send(s.report()); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ticks.C:
		case <-s.stopping:
			return nil
		case <-out.Context().Done():
			return out.Context().Err()
		}
	}
}

// revoked converts the revoked users and folders of a request to the names that tickets use.
func revoked(q *storagepb.WatchRequest) transfer.Revoked {
	b := transfer.Revoked{Users: map[string]bool{}, Folders: map[transfer.UserFolder]time.Time{}}
	for _, raw := range q.RevokedUsers {
		if id, err := uuid.FromBytes(raw); err == nil {
			b.Users[id.String()] = true
		}
	}
	for _, f := range q.RevokedFolders {
		user, uerr := uuid.FromBytes(f.User)
		folder, ferr := uuid.FromBytes(f.Folder)
		if uerr != nil || ferr != nil {
			continue
		}
		key := transfer.UserFolder{User: user.String(), Folder: folder.String()}
		if since := time.UnixMilli(f.SinceUnixMs); since.After(b.Folders[key]) {
			b.Folders[key] = since
		}
	}
	return b
}

func (s *service) CreateScope(ctx context.Context, q *storagepb.ScopeRequest) (*storagepb.Scope, error) {
	return s.scope(q, func(v *volume.Volume) (*volumepb.Scope, error) {
		return v.CreateScope(ctx, q.Scope, limitOf(q))
	})
}

func (s *service) SetScopeLimit(ctx context.Context, q *storagepb.ScopeRequest) (*storagepb.Scope, error) {
	return s.scope(q, func(v *volume.Volume) (*volumepb.Scope, error) {
		return v.SetScopeLimit(ctx, q.Scope, limitOf(q))
	})
}

func (s *service) GetScope(ctx context.Context, q *storagepb.ScopeRequest) (*storagepb.Scope, error) {
	return s.scope(q, func(v *volume.Volume) (*volumepb.Scope, error) {
		return v.GetScope(ctx, q.Scope)
	})
}

func (s *service) scope(q *storagepb.ScopeRequest, f func(*volume.Volume) (*volumepb.Scope, error)) (*storagepb.Scope, error) {
	v, err := s.p.set.Get(q.Volume)
	if err != nil {
		return nil, err
	}
	got, err := f(v)
	if err != nil {
		return nil, err
	}
	return scopeOf(v, q.Scope, got), nil
}

func limitOf(q *storagepb.ScopeRequest) *volumepb.Limit {
	return &volumepb.Limit{Bytes: q.LimitBytes, Inodes: q.LimitInodes}
}

func scopeOf(v *volume.Volume, id string, got *volumepb.Scope) *storagepb.Scope {
	out := &storagepb.Scope{Volume: v.Name(), Scope: id, UsedBytes: got.UsedBytes, UsedInodes: got.UsedInodes, Enforcement: v.Enforcement()}
	if got.Limit != nil {
		out.LimitBytes, out.LimitInodes = got.Limit.Bytes, got.Limit.Inodes
	}
	return out
}

func (s *service) DeleteScope(ctx context.Context, q *storagepb.ScopeRequest) (*storagepb.DeleteScopeResponse, error) {
	v, err := s.p.set.Get(q.Volume)
	if err != nil {
		return nil, err
	}
	if err := v.DeleteScope(ctx, q.Scope); err != nil {
		return nil, err
	}
	return &storagepb.DeleteScopeResponse{}, nil
}

func (s *service) ListScopes(q *storagepb.ListScopesRequest, out grpc.ServerStreamingServer[storagepb.Scope]) error {
	v, err := s.p.set.Get(q.Volume)
	if err != nil {
		return err
	}
	return v.EachScope(out.Context(), func(got *volumepb.Scope) error {
		return out.Send(scopeOf(v, volume.UUID(got.Scope), got))
	})
}

var places = map[volume.Place]storagepb.FolderEntry_State{
	volume.Present: storagepb.FolderEntry_PRESENT, volume.Arriving: storagepb.FolderEntry_ARRIVING,
	volume.Deleting: storagepb.FolderEntry_DELETING, volume.Unknown: storagepb.FolderEntry_UNKNOWN,
}

func (s *service) ListFolders(q *storagepb.ListFoldersRequest, out grpc.ServerStreamingServer[storagepb.FolderEntry]) error {
	v, err := s.p.set.Get(q.Volume)
	if err != nil {
		return err
	}
	return v.EachFolder(out.Context(), q.Scope, func(f volume.Found) error {
		return out.Send(&storagepb.FolderEntry{
			State: places[f.Place], Scope: volume.UUID(f.Scope), Folder: volume.UUID(f.Folder), Path: text(f.Path),
		})
	})
}

func (s *service) CreateFolder(_ context.Context, q *storagepb.FolderRef) (*storagepb.Folder, error) {
	v, err := s.p.set.Get(q.Volume)
	if err != nil {
		return nil, err
	}
	f, err := v.CreateFolder(q.Scope, q.Folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return &storagepb.Folder{Path: f.Path}, nil
}

// usageTimeout limits the walk of GetFolder. For a larger folder, the answer has no usage.
const usageTimeout = 2 * time.Second

func (s *service) GetFolder(ctx context.Context, q *storagepb.FolderRef) (*storagepb.Folder, error) {
	f, err := s.folder(q)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &storagepb.Folder{Path: f.Path}
	walk, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	usage, err := f.Usage(walk)
	if err != nil {
		if walk.Err() != nil {
			return out, ctx.Err()
		}
		return nil, err
	}
	out.UsedBytes, out.Files, out.Exact = &usage.Bytes, &usage.Files, usage.Exact
	return out, nil
}

func (s *service) DeleteFolder(q *storagepb.FolderRef, out grpc.ServerStreamingServer[storagepb.Progress]) error {
	v, err := s.p.set.Get(q.Volume)
	if err != nil {
		return err
	}
	return s.long(out, func(ctx context.Context, m *volume.Meter, _ *results) error {
		return v.DeleteFolder(ctx, q.Scope, q.Folder, m)
	})
}

func (s *service) MoveFolder(ctx context.Context, q *storagepb.MoveFolderRequest) (*storagepb.Folder, error) {
	v, err := s.p.set.Get(q.GetFolder().GetVolume())
	if err != nil {
		return nil, err
	}
	f, err := v.MoveFolder(ctx, q.GetFolder().GetScope(), q.GetFolder().GetFolder(), q.ToScope)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return &storagepb.Folder{Path: f.Path}, nil
}

func (s *service) CloneFolder(q *storagepb.CloneFolderRequest, out grpc.ServerStreamingServer[storagepb.Progress]) error {
	from, err := s.folder(q.From)
	if err != nil {
		return err
	}
	defer from.Close()
	v, err := s.p.set.Get(q.GetTo().GetVolume())
	if err != nil {
		return err
	}
	return s.long(out, func(ctx context.Context, m *volume.Meter, left *results) error {
		return v.CloneFolder(ctx, from, q.GetTo().GetScope(), q.GetTo().GetFolder(), m, func(path string) {
			left.add(storagepb.NewFileResult(path, nil, errDeep))
		})
	})
}

// errDeep is the reason why a clone leaves a directory out.
var errDeep = fmt.Errorf("its contents are more than %d levels deep and were left out: %w", folderpath.MaxDepth, errdefs.ErrInvalidArgument)

func (s *service) folder(q *storagepb.FolderRef) (*volume.Folder, error) {
	v, err := s.p.set.Get(q.GetVolume())
	if err != nil {
		return nil, err
	}
	return v.Folder(q.GetScope(), q.GetFolder())
}
