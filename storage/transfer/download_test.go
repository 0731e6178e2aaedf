package transfer_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func TestDownload(t *testing.T) {
	h := storagetest.New(t)
	data := storagetest.Random(500_000)
	name := "dir/grö ße'\"(1).html"
	h.Write(name, string(data))
	tk := h.Ticket("download", name, 0)
	resp := h.Tus("GET", "/download?ticket="+tk, "", nil)
	if resp.StatusCode != 200 || !bytes.Equal(storagetest.Body(t, resp), data) {
		t.Fatalf("GET: %s", resp.Status)
	}
	hd := resp.Header
	want := `attachment; filename="gr_ _e'_(1).html"; filename*=UTF-8''gr%C3%B6%20%C3%9Fe%27%22%281%29.html`
	if d := cmp.Diff(want, hd.Get("Content-Disposition")); d != "" {
		t.Error(d)
	}
	if hd.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(hd.Get("Content-Security-Policy"), "sandbox") ||
		hd.Get("ETag") == "" || hd.Get("Last-Modified") == "" {
		t.Errorf("headers %v", hd)
	}
	for _, tc := range []struct {
		name    string
		headers []string
		status  int
		body    []byte
	}{
		{"range", []string{"Range", "bytes=10-19"}, 206, data[10:20]},
		{"last bytes", []string{"Range", "bytes=-5"}, 206, data[len(data)-5:]},
		{"rest of the same file", []string{"Range", "bytes=499990-", "If-Range", hd.Get("ETag")}, 206, data[499990:]},
		{"rest of another file", []string{"Range", "bytes=499990-", "If-Range", `"x"`}, 200, data},
		{"unchanged", []string{"If-None-Match", hd.Get("ETag")}, 304, []byte{}},
		{"past the end", []string{"Range", "bytes=500000-"}, 416, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := h.Tus("GET", "/download", tk, nil, tc.headers...)
			if resp.StatusCode != tc.status || tc.body != nil && !bytes.Equal(storagetest.Body(t, resp), tc.body) {
				t.Errorf("%s", resp.Status)
			}
		})
	}
	if resp := h.Tus("HEAD", "/download", tk, nil); resp.StatusCode != 200 || resp.ContentLength != int64(len(data)) {
		t.Errorf("HEAD: %s, %d bytes", resp.Status, resp.ContentLength)
	}
	if strings.Contains(h.Logs.String(), tk[:40]) {
		t.Error("a ticket is in the log")
	}
	if !strings.Contains(h.Logs.String(), hd.Get("X-Request-Id")) {
		t.Error("the request id is not in the log")
	}
}

func TestDownloadRefuses(t *testing.T) {
	h := storagetest.New(t)
	h.Write("f", "x")
	if err := unix.Mkfifo(filepath.Join(h.Path, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(h.Path, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(h.Path, "etc")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", filepath.Join(h.Path, "inner")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path   string
		status int
	}{
		{"absent", 404}, {"", 409}, {"fifo", 400}, {"link", 400}, {"etc/passwd", 400}, {"inner", 400},
		{"../f", 400}, {"/etc/passwd", 400}, {"a\x00", 400}, {"f/x", 400},
	} {
		t.Run(fmt.Sprintf("%q", tc.path), func(t *testing.T) {
			resp := h.Tus("GET", "/download", h.Ticket("download", tc.path, 0), nil) // opening a FIFO would wait for its writer forever
			h.Problem(resp)
			if resp.StatusCode != tc.status {
				t.Errorf("%s, want %d", resp.Status, tc.status)
			}
			if strings.Contains(h.Logs.String(), "root:") {
				t.Error("foreign content")
			}
		})
	}
	// If the proxy opened the FIFO for reading, this open would succeed.
	if fd, err := unix.Open(filepath.Join(h.Path, "fifo"), unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		unix.Close(fd)
		t.Error("the FIFO is open")
	}
	if resp := h.Tus("GET", "/download", h.Ticket("upload", "f", 1), nil); resp.StatusCode != 403 {
		t.Errorf("upload ticket: %s", resp.Status)
	}
}

func TestArchive(t *testing.T) {
	h := storagetest.New(t)
	big := storagetest.Random(3 << 20)
	h.Write("d/big.bin", string(big))
	h.Write("d/sub/text.txt", strings.Repeat("hello ", 10_000))
	h.Write("d/naïve name", "n")
	h.Write("outside", "SECRET")
	if err := os.Mkdir(filepath.Join(h.Path, "d/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"abs": "/etc/passwd", "up": "../outside", "dirlink": "..", "etc": "/etc"} {
		if err := os.Symlink(to, filepath.Join(h.Path, "d", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(h.Path, "d/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	resp := h.Tus("GET", "/archive", h.Ticket("archive", "d", 0), nil)
	raw := storagetest.Body(t, resp)
	if resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("Content-Disposition"), `"d.zip"`) {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Name == "big.bin" && !bytes.Equal(content, big) {
			t.Error("big.bin differs")
		}
	}
	sort.Strings(names)
	if d := cmp.Diff([]string{"big.bin", "empty/", "naïve name", "sub/", "sub/text.txt"}, names); d != "" {
		t.Error(d)
	}
	// Another program reads the other format.
	resp = h.Tus("GET", "/archive?format=tar.zst", h.Ticket("archive", "", 0), nil)
	if names := tarNames(t, storagetest.Body(t, resp)); !strings.Contains(names, "d/sub/text.txt\n") || strings.Contains(names, "abs") {
		t.Errorf("tar holds\n%s", names)
	}
	for _, tc := range []struct {
		query, path string
		status      int
	}{{"?format=rar", "d", 400}, {"", "absent", 404}, {"", "outside", 400}, {"", "d/dirlink", 400}} {
		if resp := h.Tus("GET", "/archive"+tc.query, h.Ticket("archive", tc.path, 0), nil); resp.StatusCode != tc.status {
			t.Errorf("%v: %s", tc, resp.Status)
		}
	}
}

// The plugin is killed during a download. The download continues, calls about scopes return
// UNAVAILABLE, and the plugin runs again within a second.
func TestPluginKilled(t *testing.T) {
	h := storagetest.New(t)
	data := storagetest.Random(32 << 20)
	h.Write("big", string(data))
	req, err := http.NewRequest("GET", h.HTTP.URL+"/storage/download", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Ticket("download", "big", 0))
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 1<<20)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	pid := storagetest.PluginPid(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if r := h.Tus("GET", "/download", h.Ticket("download", "big", 0), nil, "Range", "bytes=0-9"); r.StatusCode != 206 {
		t.Errorf("download beside a dead plugin: %s", r.Status)
	}
	tk := h.Ticket("upload", "u", 1)
	at := h.Begin(tk, 1)
	if r := h.Tus("PATCH", at, tk, strings.NewReader("x"), "Upload-Offset", "0"); r.StatusCode != 204 {
		t.Errorf("upload beside a dead plugin: %s", r.Status)
	}
	wait.Until(t, "plugin back", func() bool {
		_, err := h.API.GetScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope})
		now := storagetest.PluginPids(t)
		return err == nil && len(now) == 1 && now[0] != pid
	})
	t.Logf("plugin back after %v", time.Since(began))
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(append(first, rest...), data) {
		t.Errorf("the download was disturbed: %v", err)
	}
}
