package storage_test

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/storage/storagepb"
)

// follow reads a stream of progress to its end and checks what every one must
// keep to.
func follow(t testing.TB, stream grpc.ServerStreamingClient[storagepb.Progress]) (last *storagepb.Progress, results []*storagepb.FileResult, err error) {
	t.Helper()
	last = &storagepb.Progress{}
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !last.Finished || last.Files != last.FilesTotal || last.Bytes != last.BytesTotal {
				t.Errorf("the last message is %v", last)
			}
			return last, results, nil
		}
		if err != nil {
			return last, results, err
		}
		if p.Files < last.Files || p.Bytes < last.Bytes || p.FilesTotal > 0 && p.Files > p.FilesTotal || p.BytesTotal > 0 && p.Bytes > p.BytesTotal {
			t.Errorf("progress went from %v to %v", last, p)
		}
		last = p
		results = append(results, p.Results...)
	}
}

func (h *host) makeDirectory(path string) error {
	h.t.Helper()
	r, err := h.api.MakeDirectories(h.ctx(), &storagepb.MakeDirectoriesRequest{Folder: h.ref, Paths: []string{path}})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Results[0].Err()
}

func (h *host) moveFile(from, to string, overwrite bool) error {
	h.t.Helper()
	stream, err := h.api.MoveFiles(h.ctx(), &storagepb.TransferRequest{
		From: h.ref, To: h.ref, Files: []*storagepb.FilePair{{From: from, To: to}}, Overwrite: overwrite,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	_, results, err := follow(h.t, stream)
	if err != nil || len(results) != 1 || results[0].Path != from {
		h.t.Fatal(results, err)
	}
	return results[0].Err()
}

func (h *host) deleteFiles(recursive bool, paths ...string) []*storagepb.FileResult {
	h.t.Helper()
	stream, err := h.api.DeleteFiles(h.ctx(), &storagepb.DeleteFilesRequest{Folder: h.ref, Paths: paths, Recursive: recursive})
	if err != nil {
		h.t.Fatal(err)
	}
	_, results, err := follow(h.t, stream)
	if err != nil || len(results) != len(paths) {
		h.t.Fatal(results, err)
	}
	return results
}
