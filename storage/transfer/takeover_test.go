package transfer_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagetest"
)

// part returns the file that contains the arrived bytes of an upload.
func part(h *storagetest.Host, at string) string {
	return filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload", filepath.Base(at)+".part")
}

// A new request for an upload ends the request that has locked it, because a client whose
// connection broke must not wait for TCP to notice.
func TestUploadIsTakenOver(t *testing.T) {
	h := storagetest.New(t)
	tk := h.Ticket("upload", "f", 8)
	at := h.Begin(tk, 8)
	pr, pw := io.Pipe()
	defer pw.Close()
	stuck := make(chan error, 1)
	go func() {
		_, err := h.Try(context.Background(), "PATCH", at, tk, pr, "Upload-Offset", "0")
		stuck <- err
	}()
	if _, err := pw.Write([]byte("0123")); err != nil {
		t.Fatal(err)
	}
	// An earlier HEAD would end the PATCH before it has read any bytes.
	wait.Until(t, "first bytes", func() bool {
		info, err := os.Stat(part(h, at))
		return err == nil && info.Size() == 4
	})
	if got := h.Offset(at, tk); got != 4 {
		t.Fatalf("offset %d, want 4", got)
	}
	pw.CloseWithError(io.ErrClosedPipe)
	<-stuck
	if resp := h.Tus("PATCH", at, tk, strings.NewReader("4567"), "Upload-Offset", "4"); resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	h.WantFile("f", []byte("01234567"))
}

// After a request has lost its upload to another one, its connection serves the next requests
// normally. Behind a reverse proxy, these belong to other clients.
func TestConnectionOutlivesTakeover(t *testing.T) {
	h := storagetest.New(t)
	var lost atomic.Int32 // requests that ended before they began
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			lost.Add(1)
		}
		http.StripPrefix("/storage", h.Proxy.Handler()).ServeHTTP(w, r)
	}))
	defer front.Close()
	tk := h.Ticket("upload", "f", 8)
	at := h.Begin(tk, 8)
	head := func() (int, error) {
		req, err := http.NewRequest("HEAD", front.URL+at, nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Tus-Resumable", "1.0.0")
		req.Header.Set("Authorization", "Bearer "+tk)
		resp, err := front.Client().Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	// Another proxy has the upload, so the first request has the lock here and waits.
	file, err := os.OpenFile(part(h, at), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	first, second := make(chan int, 1), make(chan error, 1)
	go func() {
		status, err := head()
		if err != nil {
			t.Error(err)
		}
		first <- status
	}()
	wait.Until(t, "first request has the upload", func() bool { return len(opened(t, part(h, at))) > 1 })
	go func() {
		_, err := h.Try(context.Background(), "HEAD", at, tk, nil)
		second <- err
	}()
	if status := <-first; status != http.StatusConflict {
		t.Errorf("first request: %d", status)
	}
	file.Close()
	if err := <-second; err != nil {
		t.Error(err)
	}
	if status, err := head(); err != nil || status != http.StatusOK || lost.Load() > 0 {
		t.Errorf("next request on the connection: %d, %v; %d were over before they began", status, err, lost.Load())
	}
}

// opened lists this process's descriptors of a file.
func opened(t *testing.T, path string) (fds []string) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == path {
			fds = append(fds, fd.Name())
		}
	}
	return fds
}
