package volume_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// levels returns a path of n names.
func levels(n int) string { return strings.TrimSuffix(strings.Repeat("d/", n), "/") }

// dig creates nested directories, as a session can, and a file in the innermost one.
func dig(h *storagetest.Host, from string, n int) {
	h.TB.Helper()
	fd, err := unix.Open(filepath.Join(h.Path, from), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		h.TB.Fatal(err)
	}
	for range n {
		err := unix.Mkdirat(fd, "d", 0o755)
		next, oerr := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		if err != nil || oerr != nil {
			h.TB.Fatal(err, oerr)
		}
		fd = next
	}
	defer unix.Close(fd)
	f, err := unix.Openat(fd, "file", unix.O_WRONLY|unix.O_CREAT, 0o644)
	if err != nil {
		h.TB.Fatal(err)
	}
	unix.Close(f)
}

func TestDeepPathsAreRefused(t *testing.T) {
	h, _, address := storagetest.NewSFTP(t)
	if err := h.MakeDirectory(levels(511)); err != nil {
		t.Fatal(err)
	}
	if err := h.MakeDirectory("deep/" + levels(512)); err == nil {
		t.Error("a directory of 513 levels was created")
	}
	post := func(path string) int {
		return h.Tus("POST", "/uploads", h.Ticket("upload", path, 0), nil, "Upload-Length", "0").StatusCode
	}
	if got := post(levels(511) + "/f"); got != http.StatusCreated {
		t.Errorf("upload to level 512: %d", got)
	}
	if got := post(levels(512) + "/f"); got != http.StatusBadRequest {
		t.Errorf("upload to level 513: %d", got)
	}
	if resp, _ := h.WebDAV("MKCOL", "/mine/data/"+levels(512), "rw", ""); resp.StatusCode != http.StatusCreated {
		t.Errorf("MKCOL of level 512: %s", resp.Status)
	}
	if resp, _ := h.WebDAV("MKCOL", "/mine/data/"+levels(513), "rw", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("MKCOL of level 513: %s", resp.Status)
	}
	if resp, _ := h.WebDAV("PUT", "/mine/data/"+levels(512)+"/f", "rw", "x"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("PUT to level 513: %s", resp.Status)
	}
	c := storagetest.SFTPClient(t, address, "rw")
	if err := c.Mkdir("/mine/data/" + levels(513)); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("SFTP mkdir of level 513: %v", err)
	}
	if _, err := c.Create("/mine/data/" + levels(512) + "/f"); storagetest.ErrorClass(err) != "failure" {
		t.Errorf("SFTP put to level 513: %v", err)
	}
	// A tree that would become too deep is not moved or copied.
	h.Write("a/b/c", "x")
	h.Write("x/y/z", "x")
	if err := h.MoveFile("d", "a/b/d", false); err == nil {
		t.Error("a tree of 512 levels was moved two levels down")
	}
	if err := h.MoveFile("a", "x/y/a", false); err != nil {
		t.Errorf("a shallow tree: %v", err)
	}
	if err := h.MoveFile("d", "e", false); err != nil {
		t.Errorf("a deep tree that gets no deeper: %v", err)
	}
	results, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("e", "x/y/e")})
	if err != nil || results[0].Err() == nil {
		t.Errorf("a tree of 512 levels was copied two levels down: %v %v", results, err)
	}
	if results := h.DeleteFiles(true, "e"); results[0].Err() != nil {
		t.Errorf("delete: %v", results[0].Err())
	}
}

// Directories that sessions nest too deep do not prevent an archive or a clone of the rest.
func TestDeepPathsAreLeftOut(t *testing.T) {
	h := storagetest.New(t)
	h.Write("shallow", "here")
	h.Write("LEFT-OUT.txt", "mine")
	dig(h, "", 600)
	resp := h.Get("/archive?format=zip&ticket=" + h.Ticket("archive", "", 0))
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		f, err := z.Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return ""
		}
		defer f.Close()
		text, _ := io.ReadAll(f)
		return string(text)
	}
	if read("shallow") != "here" || read("LEFT-OUT.txt") != "mine" {
		t.Error("files of the archive are others")
	}
	if list := read("BERTH-LEFT-OUT.txt"); !strings.Contains(list, "512") || !strings.Contains(list, "\n"+levels(512)+"\n") {
		t.Errorf("the list is %q", list)
	}
	to := &storagepb.FolderRef{Volume: "main", Scope: h.Ref.Scope, Folder: uuid.NewString()}
	stream, err := h.API.CloneFolder(h.Ctx(), &storagepb.CloneFolderRequest{From: h.Ref, To: to})
	if err != nil {
		t.Fatal(err)
	}
	_, results, err := storagetest.Follow(t, stream)
	if err != nil || len(results) != 1 || results[0].Path != levels(512) {
		t.Fatalf("%v, %v", results, err)
	}
	storagetest.WantCode(t, results[0].Err(), codes.InvalidArgument)
	made, err := h.API.GetFolder(h.Ctx(), to)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(h.Mount, made.Path, "shallow")); err != nil || string(text) != "here" {
		t.Errorf("the clone has %q, %v", text, err)
	}
	if results := h.DeleteFiles(true, "d"); results[0].Err() != nil {
		t.Errorf("delete: %v", results[0].Err())
	}
}

// An archive of many small files needs little more than their size, because one compressor serves
// all of them.
func TestArchiveOfManySmallFiles(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	const n = 2000
	for i := range n {
		h.Write("d"+strconv.Itoa(i%20)+"/f"+strconv.Itoa(i), "0123456789"+strconv.Itoa(i))
	}
	resp := h.Get("/archive?format=zip&ticket=" + h.Ticket("archive", "", 0))
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		files++
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		_, number, _ := strings.Cut(f.Name, "/f")
		if err != nil || string(text) != "0123456789"+number {
			t.Fatalf("%s is %q, %v", f.Name, text, err)
		}
	}
	if files != n {
		t.Errorf("%d files", files)
	}
}
