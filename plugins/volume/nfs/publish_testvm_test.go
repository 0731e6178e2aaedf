package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// proxy is the upload part of a storage proxy, with the NFS mount as its volume.
type proxy struct {
	*testing.T
	url    string
	ticket string
	folder string // below the mount point and on the server
	scope  string
}

// serve starts the proxy with a folder and a ticket for one file in it.
func (s site) serve(t *testing.T, file string, size int64) proxy {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	set, err := volume.NewSet(t.TempDir(), []volume.Config{{
		Name: "main", Backend: s.Program("nfs"), MountPath: s.mount, OptionsJSON: `{"usage_max_age_s": 0}`,
	}}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = set.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })

	key, err := ticket.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, verifier := ticket.NewSigner(key), new(ticket.Verifier)
	if err := verifier.SetKeys([][]byte{signer.PublicKey()}); err != nil {
		t.Fatal(err)
	}
	data, err := transfer.New(transfer.Config{Volumes: set, Tickets: verifier, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(data)
	t.Cleanup(web.Close)

	v, err := set.Get("main")
	if err != nil {
		t.Fatal(err)
	}
	scope, id := uuid.New(), uuid.New()
	wait.For(t, func() error {
		_, err := v.CreateScope(ctx, scope.String(), nil)
		if err != nil && !errdefs.IsUnavailable(err) { // the plugin is starting
			t.Fatal(err)
		}
		return err
	})
	hex := fmt.Sprintf("%x", scope[:])
	s.limit(t, hex, 40<<20)
	f, err := v.CreateFolder(scope.String(), id.String())
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	name := fmt.Sprintf("%x", id[:])
	return proxy{T: t, url: web.URL, scope: hex, folder: filepath.Join(hex, name[:2], name[2:4], name[4:]), ticket: signer.Sign(ticket.Claims{
		Operation: ticket.Upload, Volume: "main", Scope: scope.String(), Folder: id.String(),
		Path: file, Size: size, User: "u1", Expires: time.Now().Add(time.Hour),
	})}
}

// tus sends one request and returns the response with its body.
func (p proxy) tus(method, path string, body []byte, headers ...string) (*http.Response, string) {
	p.Helper()
	req, err := http.NewRequest(method, p.url+path, bytes.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	req.Header.Set("Authorization", "Bearer "+p.ticket)
	req.Header.Set("Content-Type", "application/offset+octet-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		p.Fatal(err)
	}
	return resp, string(raw)
}

func (p proxy) files(dir string) int {
	p.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, p.folder))
	if err != nil {
		p.Fatal(err)
	}
	return len(entries)
}

// TestVMQuotaAtClose checks an upload when an NFS client accepts bytes that the server refuses,
// which the client reports at fsync and close. The upload ends with a clear error, and no part of
// it is visible in the folder. After the limit was raised, it continues, and every byte is correct,
// including those that were refused.
func TestVMQuotaAtClose(t *testing.T) {
	each(t, "vers=4.2", func(t *testing.T, s site) {
		data := make([]byte, 24<<20)
		random := rand.NewChaCha8([32]byte{1})
		_, _ = random.Read(data)
		p := s.serve(t, "file", int64(len(data)))

		resp, body := p.tus("POST", "/uploads", nil, "Upload-Length", strconv.Itoa(len(data)))
		if resp.StatusCode != http.StatusCreated {
			t.Fatalf("begin: %s %s", resp.Status, body)
		}
		at := "/" + resp.Header.Get("Location")
		const first = 3<<20 + 1
		if resp, body := p.tus("PATCH", at, data[:first], "Upload-Offset", "0"); resp.StatusCode != http.StatusNoContent {
			t.Fatalf("first bytes: %s %s", resp.Status, body)
		}
		// Another machine fills the scope in the meantime.
		full(t, filepath.Join(s.disk, p.scope, "other"), 26<<20)

		resp, body = p.tus("PATCH", at, data[first:], "Upload-Offset", strconv.Itoa(first))
		var problem struct{ Code, Detail string }
		if err := json.Unmarshal([]byte(body), &problem); err != nil || resp.StatusCode != http.StatusInsufficientStorage || problem.Code != "RESOURCE_EXHAUSTED" {
			t.Errorf("past the limit: %s %s", resp.Status, body)
		}
		t.Logf("past the limit: %s %s", resp.Status, problem.Detail)
		if n, m := p.files(s.mount), p.files(s.disk); n+m > 0 {
			t.Errorf("%d files are seen in the folder, %d on the server", n, m)
		}

		s.limit(t, p.scope, 200<<20)
		resp, _ = p.tus("HEAD", at, nil)
		offset, err := strconv.Atoi(resp.Header.Get("Upload-Offset"))
		if err != nil || offset < first {
			t.Fatalf("offset %s %s, %v", resp.Status, resp.Header, err)
		}
		t.Logf("it continues at %d", offset)
		resp, body = p.tus("PATCH", at, data[offset:], "Upload-Offset", strconv.Itoa(offset))
		if resp.StatusCode != http.StatusNoContent {
			t.Fatalf("after the limit was raised: %s %s", resp.Status, body)
		}
		got, err := os.ReadFile(filepath.Join(s.disk, p.folder, "file"))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("went on at %d; the server has %d bytes, the first wrong one is %d, %v", offset, len(got), differ(got, data), err)
		}
	})
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func full(t *testing.T, path string, size int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}
