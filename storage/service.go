package storage

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

// reportEvery is the longest a manager hears nothing on Watch.
const reportEvery = 10 * time.Second

// service is the control side.
type service struct {
	storagepb.UnimplementedStorageServer
	p           *Proxy
	incarnation string
	stopping    chan struct{}
	once        sync.Once
	// learn hands on the managers' addresses; nil outside a cluster.
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
	s.p.http.Bar(barred(q.BarredUsers))
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

// barred names users as tickets do.
func barred(ids [][]byte) []string {
	var list []string
	for _, b := range ids {
		if id, err := uuid.FromBytes(b); err == nil {
			list = append(list, id.String())
		}
	}
	return list
}

func (s *service) report() *storagepb.Report {
	r := &storagepb.Report{
		Name: s.p.cfg.Name, Version: s.p.cfg.Version,
		Incarnation: s.incarnation, PublicUrl: s.p.cfg.PublicURL,
	}
	for _, v := range s.p.Volumes() {
		r.Volumes = append(r.Volumes, &storagepb.Volume{
			Name: v.Name, Backend: v.Backend, Health: health(v.Health), Message: v.Message,
			Capabilities: v.Capabilities, TotalBytes: v.TotalBytes, UsedBytes: v.UsedBytes,
		})
	}
	return r
}

func health(h volumepb.HealthReport_State) storagepb.Volume_Health {
	switch h {
	case volumepb.HealthReport_HEALTHY:
		return storagepb.Volume_HEALTHY
	case volumepb.HealthReport_DEGRADED:
		return storagepb.Volume_DEGRADED
	}
	return storagepb.Volume_UNAVAILABLE
}

func (s *service) CreateScope(ctx context.Context, q *storagepb.ScopeRequest) (*storagepb.Scope, error) {
	return s.scope(q, func(v *volume.Volume) (*volumepb.Scope, error) {
		return v.CreateScope(ctx, q.Scope, q.LimitBytes)
	})
}

func (s *service) SetScopeLimit(ctx context.Context, q *storagepb.ScopeRequest) (*storagepb.Scope, error) {
	return s.scope(q, func(v *volume.Volume) (*volumepb.Scope, error) {
		return v.SetScopeLimit(ctx, q.Scope, q.LimitBytes)
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
	out := &storagepb.Scope{Volume: q.Volume, Scope: q.Scope, UsedBytes: got.UsedBytes, Enforcement: v.Enforcement()}
	if got.Limit != nil {
		out.LimitBytes = got.Limit.Bytes
	}
	return out, nil
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

// usagePatience bounds the walk of GetFolder: a larger folder is answered
// without figures.
const usagePatience = 2 * time.Second

func (s *service) GetFolder(ctx context.Context, q *storagepb.FolderRef) (*storagepb.Folder, error) {
	f, err := s.folder(q)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &storagepb.Folder{Path: f.Path}
	walk, cancel := context.WithTimeout(ctx, usagePatience)
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
	var last storagepb.Progress
	err = v.DeleteFolder(out.Context(), q.Scope, q.Folder, func(done, total int64) error {
		select {
		case <-s.stopping:
			return context.Canceled
		default:
		}
		last.Done, last.Total = max(done, last.Done), max(total, last.Total)
		return out.Send(&storagepb.Progress{Done: last.Done, Total: last.Total})
	})
	if err != nil {
		return err
	}
	return out.Send(&storagepb.Progress{Done: last.Done, Total: last.Total, Finished: true})
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

func (s *service) folder(q *storagepb.FolderRef) (*volume.Folder, error) {
	v, err := s.p.set.Get(q.GetVolume())
	if err != nil {
		return nil, err
	}
	return v.Folder(q.GetScope(), q.GetFolder())
}

// in runs f with an open folder.
func in[T any](s *service, q *storagepb.FolderRef, f func(*volume.Folder) (T, error)) (T, error) {
	var none T
	folder, err := s.folder(q)
	if err != nil {
		return none, err
	}
	defer folder.Close()
	out, err := f(folder)
	if err != nil {
		return none, err
	}
	return out, nil
}

func (s *service) ListFiles(_ context.Context, q *storagepb.ListFilesRequest) (*storagepb.ListFilesResponse, error) {
	limit := int(q.Limit)
	if limit == 0 {
		limit = 100
	}
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.ListFilesResponse, error) {
		entries, next, err := f.List(q.Path, min(limit, volume.MaxPage), q.Cursor)
		if err != nil {
			return nil, err
		}
		out := &storagepb.ListFilesResponse{NextCursor: next, Files: make([]*storagepb.FileInfo, len(entries))}
		for i, e := range entries {
			out.Files[i] = fileInfo(e)
		}
		return out, nil
	})
}

func (s *service) StatFile(_ context.Context, q *storagepb.FileRef) (*storagepb.FileInfo, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.FileInfo, error) {
		e, err := f.Stat(q.Path)
		return fileInfo(e), err
	})
}

func (s *service) MakeDirectory(_ context.Context, q *storagepb.FileRef) (*storagepb.FileInfo, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.FileInfo, error) {
		e, err := f.MakeDirectory(q.Path)
		return fileInfo(e), err
	})
}

func (s *service) MoveFile(_ context.Context, q *storagepb.MoveFileRequest) (*storagepb.FileInfo, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.FileInfo, error) {
		e, err := f.Move(q.From, q.To, q.Overwrite)
		return fileInfo(e), err
	})
}

func (s *service) DeleteFiles(ctx context.Context, q *storagepb.DeleteFilesRequest) (*storagepb.DeleteFilesResponse, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.DeleteFilesResponse, error) {
		out := &storagepb.DeleteFilesResponse{}
		for _, path := range q.Paths {
			r := &storagepb.FileResult{Path: path}
			if err := f.Remove(ctx, path); err != nil {
				r.Error = err.Error()
			}
			out.Results = append(out.Results, r)
		}
		return out, ctx.Err()
	})
}

func fileInfo(e volume.Entry) *storagepb.FileInfo {
	kind := storagepb.FileInfo_OTHER
	switch e.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		kind = storagepb.FileInfo_FILE
	case unix.S_IFDIR:
		kind = storagepb.FileInfo_DIRECTORY
	case unix.S_IFLNK:
		kind = storagepb.FileInfo_SYMLINK
	}
	return &storagepb.FileInfo{
		Name: text(e.Name), Path: text(e.Path), Type: kind, Size: e.Size,
		ModifiedUnixMs: e.Modified.UnixMilli(), Mode: e.Mode & 0o7777,
	}
}

// text makes a name fit for a protobuf string. A name that is no UTF-8 shows
// with U+FFFD and cannot be addressed; deleting its directory removes it.
func text(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	out := make([]rune, 0, len(name))
	for _, r := range name {
		out = append(out, r)
	}
	return string(out)
}
