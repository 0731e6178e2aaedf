package storage

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

// maxPaths limits the paths of one call.
const maxPaths = 1000

func checkPaths(field string, n int) error {
	if n == 0 || n > maxPaths {
		return fmt.Errorf("%s: %d paths in one call; allowed are 1 to %d: %w", field, n, maxPaths, errdefs.ErrInvalidArgument)
	}
	return nil
}

// in opens the folder, runs f with it and closes it.
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

// pageLimit returns the number of entries of a page.
func pageLimit(asked uint32) int {
	if asked == 0 {
		return 100
	}
	return int(min(asked, volume.MaxPage))
}

func (s *service) ListFiles(_ context.Context, q *storagepb.ListFilesRequest) (*storagepb.ListFilesResponse, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.ListFilesResponse, error) {
		return page(f.List(q.Path, pageLimit(q.Limit), q.Cursor))
	})
}

func page(entries []volume.Entry, next string, err error) (*storagepb.ListFilesResponse, error) {
	if err != nil {
		return nil, err
	}
	out := &storagepb.ListFilesResponse{NextCursor: next, Files: make([]*storagepb.FileInfo, len(entries))}
	for i, e := range entries {
		out.Files[i] = fileInfo(e)
	}
	return out, nil
}

func (s *service) SearchFiles(ctx context.Context, q *storagepb.SearchFilesRequest) (*storagepb.ListFilesResponse, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.ListFilesResponse, error) {
		return page(f.Search(ctx, q.Path, q.Text, pageLimit(q.Limit), q.Cursor))
	})
}

func (s *service) StatFile(_ context.Context, q *storagepb.FileRef) (*storagepb.FileInfo, error) {
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.FileInfo, error) {
		e, err := f.Stat(q.Path)
		return fileInfo(e), err
	})
}

func (s *service) MakeDirectories(ctx context.Context, q *storagepb.MakeDirectoriesRequest) (*storagepb.FileResults, error) {
	if err := checkPaths("paths", len(q.Paths)); err != nil {
		return nil, err
	}
	return in(s, q.Folder, func(f *volume.Folder) (*storagepb.FileResults, error) {
		out := &storagepb.FileResults{}
		for _, path := range q.Paths {
			e, err := f.MakeDirectory(path)
			out.Results = append(out.Results, storagepb.NewFileResult(path, fileInfo(e), err))
		}
		return out, ctx.Err()
	})
}

func (s *service) CopyFiles(q *storagepb.TransferRequest, out grpc.ServerStreamingServer[storagepb.Progress]) error {
	return s.transfer(q, out, false)
}

func (s *service) MoveFiles(q *storagepb.TransferRequest, out grpc.ServerStreamingServer[storagepb.Progress]) error {
	return s.transfer(q, out, true)
}

func (s *service) transfer(q *storagepb.TransferRequest, out grpc.ServerStreamingServer[storagepb.Progress], move bool) error {
	if err := checkPaths("files", len(q.Files)); err != nil {
		return err
	}
	from, err := s.folder(q.From)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := s.folder(q.To)
	if err != nil {
		return err
	}
	defer to.Close()
	t := &volume.Transfer{From: from, To: to, Move: move, Overwrite: q.Overwrite}
	for _, pair := range q.Files {
		t.Pairs = append(t.Pairs, volume.Pair{From: pair.From, To: pair.To})
	}
	return s.long(out, func(ctx context.Context, m *volume.Meter, settled *results) error {
		t.Meter = m
		t.OnResult = func(i int, e volume.Entry, err error) {
			settled.add(storagepb.NewFileResult(t.Pairs[i].From, fileInfo(e), err))
		}
		return t.Run(ctx)
	})
}

func (s *service) DeleteFiles(q *storagepb.DeleteFilesRequest, out grpc.ServerStreamingServer[storagepb.Progress]) error {
	if err := checkPaths("paths", len(q.Paths)); err != nil {
		return err
	}
	f, err := s.folder(q.Folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.long(out, func(ctx context.Context, m *volume.Meter, settled *results) error {
		for _, path := range q.Paths {
			err := f.Remove(ctx, path, q.Recursive, m)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			settled.add(storagepb.NewFileResult(path, nil, err))
		}
		return nil
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

// text returns a name as valid UTF-8, as a protobuf string requires. A name that is not UTF-8
// shows with U+FFFD and cannot be addressed; deleting its directory removes it.
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
