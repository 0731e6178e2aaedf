package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/storage/storagepb"
)

// Clone creates a copy of the host's folder in the second scope.
func (m *Moving) Clone(to *storagepb.FolderRef) (*storagepb.Progress, error) {
	m.TB.Helper()
	stream, err := m.API.CloneFolder(m.Ctx(), &storagepb.CloneFolderRequest{From: m.Ref, To: to})
	if err != nil {
		m.TB.Fatal(err)
	}
	last, _, err := Follow(m.TB, stream)
	return last, err
}

// At returns the path of a folder on disk.
func (m *Moving) At(ref *storagepb.FolderRef) string {
	hex := strings.ReplaceAll(ref.Folder, "-", "")
	return filepath.Join(m.ScopeDir(ref.Scope), hex[:2], hex[2:4], hex[4:])
}

// Fresh returns a folder of the second scope that does not exist yet.
func (m *Moving) Fresh() *storagepb.FolderRef {
	return &storagepb.FolderRef{Volume: "main", Scope: m.To, Folder: uuid.NewString()}
}

// ManyFiles returns the number of files of a tree that a test interrupts.
func ManyFiles() int {
	if testing.Short() {
		return 10_000
	}
	return 100_000
}

// FillMany creates n empty files, 500 in each directory.
func (h *Host) FillMany(n int) {
	h.TB.Helper()
	for i := range n {
		if i%500 == 0 {
			if err := os.MkdirAll(filepath.Join(h.Path, fmt.Sprintf("d%03d", i/500)), 0o755); err != nil {
				h.TB.Fatal(err)
			}
		}
		h.Touch(fmt.Sprintf("d%03d/f%06d", i/500, i))
	}
}

// CountFiles returns the number of regular files below root.
func CountFiles(root string) (n int) {
	_ = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}

// WantCode checks the gRPC code of an error.
func WantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("error %v, want %v", err, want)
	}
}

// DeleteFolder deletes a folder and returns the last progress.
func DeleteFolder(t *testing.T, h *Host, ref *storagepb.FolderRef) *storagepb.Progress {
	t.Helper()
	stream, err := h.API.DeleteFolder(h.Ctx(), ref)
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := Follow(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// Follow reads a stream of progress to its end and checks the rules for every message.
func Follow(t testing.TB, stream grpc.ServerStreamingClient[storagepb.Progress]) (last *storagepb.Progress, results []*storagepb.FileResult, err error) {
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

// MakeDirectory creates a directory of the folder and returns the error of its result.
func (h *Host) MakeDirectory(path string) error {
	h.TB.Helper()
	r, err := h.API.MakeDirectories(h.Ctx(), &storagepb.MakeDirectoriesRequest{Folder: h.Ref, Paths: []string{path}})
	if err != nil {
		h.TB.Fatal(err)
	}
	return r.Results[0].Err()
}

// MoveFile moves a file within the folder and returns the error of its result.
func (h *Host) MoveFile(from, to string, overwrite bool) error {
	h.TB.Helper()
	stream, err := h.API.MoveFiles(h.Ctx(), &storagepb.TransferRequest{
		From: h.Ref, To: h.Ref, Files: []*storagepb.FilePair{{From: from, To: to}}, Overwrite: overwrite,
	})
	if err != nil {
		h.TB.Fatal(err)
	}
	_, results, err := Follow(h.TB, stream)
	if err != nil || len(results) != 1 || results[0].Path != from {
		h.TB.Fatal(results, err)
	}
	return results[0].Err()
}

// DeleteFiles deletes paths of the folder and returns a result for each.
func (h *Host) DeleteFiles(recursive bool, paths ...string) []*storagepb.FileResult {
	h.TB.Helper()
	stream, err := h.API.DeleteFiles(h.Ctx(), &storagepb.DeleteFilesRequest{Folder: h.Ref, Paths: paths, Recursive: recursive})
	if err != nil {
		h.TB.Fatal(err)
	}
	_, results, err := Follow(h.TB, stream)
	if err != nil || len(results) != len(paths) {
		h.TB.Fatal(results, err)
	}
	return results
}

// Transfer copies or moves files and returns a result for each.
func (h *Host) Transfer(move bool, q *storagepb.TransferRequest) ([]*storagepb.FileResult, error) {
	h.TB.Helper()
	call := h.API.CopyFiles
	if move {
		call = h.API.MoveFiles
	}
	stream, err := call(h.Ctx(), q)
	if err != nil {
		h.TB.Fatal(err)
	}
	_, results, err := Follow(h.TB, stream)
	return results, err
}

// Pairs returns pairs of a source and a target, from names in that order.
func Pairs(names ...string) (list []*storagepb.FilePair) {
	for i := 0; i < len(names); i += 2 {
		list = append(list, &storagepb.FilePair{From: names[i], To: names[i+1]})
	}
	return list
}

// Moving is a host with a second scope.
type Moving struct {
	*Host
	To string
}

// ScopeDir returns the directory of a scope on disk.
func (m *Moving) ScopeDir(scope string) string {
	return filepath.Join(m.Mount, strings.ReplaceAll(scope, "-", ""))
}

// Apart mounts another file system at the second scope, so that nothing can be renamed into it.
func (m *Moving) Apart(options string) {
	m.TB.Helper()
	at := m.ScopeDir(m.To)
	err := unix.Mount("tmpfs", at, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) {
		m.TB.Skip("this process must not mount")
	}
	if err != nil {
		m.TB.Fatal(err)
	}
	m.TB.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

// Move moves the folder to the second scope.
func (m *Moving) Move() (*storagepb.Folder, error) {
	return m.API.MoveFolder(m.Ctx(), &storagepb.MoveFolderRequest{Folder: m.Ref, ToScope: m.To})
}

// Fill creates an entry of every kind in the folder.
func (m *Moving) Fill() {
	m.TB.Helper()
	ok := func(err error) {
		m.TB.Helper()
		if err != nil {
			m.TB.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(m.Path, name) }
	ok(os.MkdirAll(at("src/deep/er"), 0o755))
	ok(os.WriteFile(at("src/main.py"), []byte("print(1)\n"), 0o640))
	ok(os.WriteFile(at("src/deep/er/run.sh"), []byte("#!/bin/sh\n"), 0o755))
	ok(os.WriteFile(at("big"), bytes.Repeat([]byte("0123456789abcdef"), 128<<10), 0o644)) // 2 MiB
	ok(os.WriteFile(at("empty"), nil, 0o600))
	ok(os.WriteFile(at("na\xffme"), []byte("no UTF-8"), 0o644))
	ok(os.Link(at("src/main.py"), at("again.py")))
	ok(os.Symlink("src/main.py", at("link")))
	ok(os.Symlink("/etc/passwd", at("outside")))
	ok(unix.Mkfifo(at("pipe"), 0o620))
	ok(os.Mkdir(at("sealed"), 0o700))
	ok(os.WriteFile(at("sealed/x"), []byte("x"), 0o400))
	ok(os.Chmod(at("sealed"), 0o500))
	sparse, err := os.Create(at("sparse"))
	ok(err)
	_, err = sparse.WriteAt([]byte("end"), 64<<20)
	ok(errors.Join(err, sparse.Close()))
	ok(os.Chtimes(at("src/main.py"), time.Unix(1e9, 0), time.Unix(1e9, 123456789)))
	ok(os.Chtimes(at("src"), time.Unix(1e9, 0), time.Unix(1.1e9, 0)))
	if err := unix.Setxattr(at("big"), "user.origin", []byte("here"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		m.TB.Fatal(err)
	}
}

// Staged returns the names of the files that uploads store beside the folder.
func (h *Host) Staged() (names []string) {
	h.TB.Helper()
	entries, err := os.ReadDir(filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload"))
	if os.IsNotExist(err) { // before the first upload
		return nil
	}
	if err != nil {
		h.TB.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Search reads all pages of a search, and returns the paths in order and the number of pages.
func (h *Host) Search(path, text string, limit uint32) (found []string, pages int) {
	h.TB.Helper()
	q := &storagepb.SearchFilesRequest{Folder: h.Ref, Path: path, Text: text, Limit: limit}
	for {
		r, err := h.API.SearchFiles(h.Ctx(), q)
		if err != nil {
			h.TB.Fatal(err)
		}
		pages++
		for _, f := range r.Files {
			found = append(found, f.Path)
		}
		if q.Cursor = r.NextCursor; q.Cursor == "" {
			slices.Sort(found)
			return found, pages
		}
	}
}
