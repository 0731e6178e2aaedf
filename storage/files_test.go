package storage_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

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

func (h *host) transfer(move bool, q *storagepb.TransferRequest) ([]*storagepb.FileResult, error) {
	h.t.Helper()
	call := h.api.CopyFiles
	if move {
		call = h.api.MoveFiles
	}
	stream, err := call(h.ctx(), q)
	if err != nil {
		h.t.Fatal(err)
	}
	_, results, err := follow(h.t, stream)
	return results, err
}

func pairs(names ...string) (list []*storagepb.FilePair) {
	for i := 0; i < len(names); i += 2 {
		list = append(list, &storagepb.FilePair{From: names[i], To: names[i+1]})
	}
	return list
}

// Copies and moves of many, within a folder and to another one, on one file
// system and across two.
func TestTransferFiles(t *testing.T) {
	for name, apart := range map[string]bool{"one file system": false, "two": true} {
		for _, move := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, move %v", name, move), func(t *testing.T) {
				m := newMoving(t)
				if apart {
					m.apart("size=64m")
				}
				m.fill()
				m.write("taken", "old")
				want := tree(t, m.path)
				other := m.fresh()
				if _, err := m.api.CreateFolder(m.ctx(), other); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(m.at(other), "taken"), []byte("theirs"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(filepath.Join(m.at(other), "dir"), 0o755); err != nil {
					t.Fatal(err)
				}
				q := &storagepb.TransferRequest{From: m.ref, To: other, Files: pairs(
					"src", "dir/source", "big", "big", "link", "dir/link", "outside", "outside", "sealed", "sealed", "pipe", "pipe",
					"taken", "taken", "absent", "absent", "../x", "x", "empty", "../y", "empty", "none/empty", "sparse", "sparse",
				)}
				fails := map[string]codes.Code{
					"taken": codes.AlreadyExists, "absent": codes.NotFound, "../x": codes.InvalidArgument,
				}
				results, err := m.transfer(move, q)
				if err != nil || len(results) != len(q.Files) {
					t.Fatal(results, err)
				}
				refused := 0
				for _, r := range results {
					if r.Path == "empty" {
						if r.Error == "" {
							t.Errorf("result %v", r)
						}
						refused++
						continue
					}
					wantCode(t, r.Err(), fails[r.Path])
					if (r.File != nil) != (r.Error == "") {
						t.Errorf("result %v", r)
					}
				}
				if refused != 2 {
					t.Errorf("%d refusals of a file with bad targets", refused)
				}
				got := tree(t, m.at(other))
				for from, to := range map[string]string{
					"src/deep/er/run.sh": "dir/source/deep/er/run.sh", "src/deep": "dir/source/deep", "src": "dir/source",
					"link": "dir/link", "outside": "outside", "sealed/x": "sealed/x", "pipe": "pipe", "sparse": "sparse", "big": "big",
				} {
					if got[to] != want[from] {
						t.Errorf("%s is %q, was %q", to, got[to], want[from])
					}
				}
				if raw, _ := os.ReadFile(filepath.Join(m.at(other), "taken")); string(raw) != "theirs" {
					t.Errorf("overwritten: %q", raw)
				}
				left := tree(t, m.path)
				if _, there := left["src/deep/er/run.sh"]; there == move {
					t.Errorf("the original is there: %v", there)
				}
				if left["taken"] != want["taken"] || left["empty"] != want["empty"] {
					t.Errorf("what was refused changed: %v", left)
				}
				// Asked to, it replaces a file, and never a directory.
				q.Files, q.Overwrite = pairs("taken", "taken", "again.py", "dir"), true
				if results, err = m.transfer(move, q); err != nil || len(results) != 2 {
					t.Fatal(results, err)
				}
				for _, r := range results {
					wantCode(t, r.Err(), map[string]codes.Code{"again.py": codes.FailedPrecondition}[r.Path])
				}
				if raw, _ := os.ReadFile(filepath.Join(m.at(other), "taken")); string(raw) != "old" {
					t.Errorf("not overwritten: %q", raw)
				}
				if left, err := os.ReadDir(filepath.Join(m.scopeDir(m.to), ".arriving")); err == nil && len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// Within a folder: a copy beside the original, and none into itself.
func TestCopyWithinFolder(t *testing.T) {
	h := newHost(t)
	h.write("a/b/f", "text")
	results, err := h.transfer(false, &storagepb.TransferRequest{From: h.ref, To: h.ref, Files: pairs(
		"a", "a (copy)", "a", "a/b/c", "a/b/f", "a/b/f", "a/b/f", "f",
	)})
	if err != nil || len(results) != 4 {
		t.Fatal(results, err)
	}
	codesOf := map[codes.Code]int{}
	for _, r := range results {
		codesOf[codes.Code(r.Code)]++
	}
	if d := cmp.Diff(map[codes.Code]int{codes.OK: 2, codes.InvalidArgument: 1, codes.AlreadyExists: 1}, codesOf); d != "" {
		t.Errorf("%s %v", d, results)
	}
	for _, f := range []string{"a (copy)/b/f", "f", "a/b/f"} {
		if raw, err := os.ReadFile(filepath.Join(h.path, f)); string(raw) != "text" {
			t.Errorf("%s: %q %v", f, raw, err)
		}
	}
	for _, n := range []int{0, 1001} {
		_, err = h.transfer(false, &storagepb.TransferRequest{From: h.ref, To: h.ref, Files: make([]*storagepb.FilePair, n)})
		wantCode(t, err, codes.InvalidArgument)
	}
}
