package transfer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func TestUpload(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	h := storagetest.New(t)
	for _, size := range []int{0, 1, 300_000} {
		path := fmt.Sprintf("new dir/größe %d.bin", size)
		tk := h.Ticket("upload", path, int64(size))
		data := storagetest.Random(size)
		at := h.Begin(tk, int64(size))
		if size > 0 {
			if _, err := os.Stat(filepath.Join(h.Path, path)); !os.IsNotExist(err) {
				t.Errorf("visible before it is complete: %v", err)
			}
			resp := h.Tus("PATCH", at, tk, bytes.NewReader(data), "Upload-Offset", "0")
			if resp.StatusCode != 204 || resp.Header.Get("Upload-Offset") != strconv.Itoa(size) || resp.Header.Get("Upload-Expires") == "" {
				t.Fatalf("PATCH: %s %v", resp.Status, resp.Header)
			}
		}
		h.WantFile(path, data)
		if got := h.Offset(at, tk); got != int64(size) {
			t.Errorf("offset %d after the end", got)
		}
		// The ticket has been used, and the file is unchanged.
		resp := h.Tus("POST", "/uploads", tk, nil, "Upload-Length", strconv.Itoa(size))
		if code, _, _ := h.Problem(resp); resp.StatusCode != 409 || code != "ABORTED" {
			t.Errorf("ticket used again: %s %s", resp.Status, code)
		}
	}
	if strings.Contains(h.Logs.String(), h.Ticket("upload", "x", 1)[:40]) || strings.Contains(h.Logs.String(), "Bearer") {
		t.Error("a ticket is in the log")
	}
	metrics, err := h.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var received float64
	for _, m := range metrics {
		if m.GetName() == "berth_storage_received_bytes_total" {
			received = m.Metric[0].Counter.GetValue()
		}
	}
	if received != 300_001 {
		t.Errorf("received metric %v, want 300001", received)
	}
}

// The connection is cut at random places, and meanwhile the proxy is restarted and the ticket is
// renewed. The file must be equal in the end.
func TestUploadResumes(t *testing.T) {
	h := storagetest.New(t)
	data := storagetest.Random(8 << 20)
	tk := h.Ticket("upload", "big", int64(len(data)))
	at := h.Begin(tk, int64(len(data)))
	if again := h.Begin(tk, int64(len(data))); again != at {
		t.Errorf("asked again with the same ticket: %s, not %s", again, at)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	cuts := 0
	for {
		from := h.Offset(at, tk)
		if from == int64(len(data)) {
			break
		}
		cut := min(from+int64(rnd.IntN(1<<20)), int64(len(data)))
		if cuts > 25 {
			cut = int64(len(data))
		}
		ctx, cancel := context.WithCancel(context.Background())
		body := io.MultiReader(bytes.NewReader(data[from:cut]), &cutter{cancel: cancel, cut: cut < int64(len(data))})
		req := []string{"Upload-Offset", strconv.FormatInt(from, 10)}
		resp, err := h.Try(ctx, "PATCH", at, tk, body, req...)
		cancel()
		if err == nil && resp.StatusCode != 204 {
			t.Fatalf("PATCH at %d: %s", from, resp.Status)
		}
		cuts++
		switch cuts {
		case 8:
			h.Stop()
			h.Start()
		case 12:
			tk = h.Ticket("upload", "big", int64(len(data)))
		}
	}
	if cuts < 10 {
		t.Errorf("only %d cuts", cuts)
	}
	h.WantFile("big", data)
}

// cutter resets the connection of a request after some bytes.
type cutter struct {
	cancel func()
	cut    bool
}

func (c *cutter) Read([]byte) (int, error) {
	if !c.cut {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond) // let some bytes leave the client
	c.cancel()
	return 0, io.ErrUnexpectedEOF
}

// Two crashes: between the last byte and publishing, and while the note is written.
func TestUploadSurvivesCrashBeforePublishing(t *testing.T) {
	h := storagetest.New(t)
	tk := h.Ticket("upload", "f", 4)
	at := h.Begin(tk, 4)
	part := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(h.Path))), ".upload", filepath.Base(at)+".part")
	if err := os.WriteFile(part, []byte("abcd"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Stop()
	h.Start()
	if got := h.Offset(at, tk); got != 4 {
		t.Errorf("offset %d", got)
	}
	h.WantFile("f", []byte("abcd"))
}

func TestUploadRefuses(t *testing.T) {
	h := storagetest.New(t)
	if err := os.Mkdir(filepath.Join(h.Path, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(h.Path, "etc")); err != nil {
		t.Fatal(err)
	}
	tk := h.Ticket("upload", "f", 10)
	expired := h.Claims("upload", "f", 10)
	expired.Expires = time.Now().Add(-time.Second)
	stranger := h.Claims("upload", "f", 10)
	stranger.User = "u2"
	elsewhere := h.Claims("upload", "f", 10)
	elsewhere.Folder = uuid.NewString()
	at := h.Begin(tk, 10)
	if resp := h.Tus("PATCH", at, tk, strings.NewReader("0123"), "Upload-Offset", "0"); resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	for _, tc := range []struct {
		name, method, path, ticket, body string
		headers                          []string
		status                           int
		code, field                      string
		limit                            float64
	}{
		{"no ticket", "POST", "/uploads", "", "", []string{"Upload-Length", "10"}, 401, "UNAUTHENTICATED", "", 0},
		{"expired ticket", "POST", "/uploads", h.Signer.Sign(expired), "", []string{"Upload-Length", "10"}, 401, "UNAUTHENTICATED", "", 0},
		{"ticket for download", "POST", "/uploads", h.Ticket("download", "f", 10), "", []string{"Upload-Length", "10"}, 403, "PERMISSION_DENIED", "", 0},
		{"ticket in the query", "POST", "/uploads?ticket=" + tk, "", "", []string{"Upload-Length", "10"}, 401, "UNAUTHENTICATED", "", 0},
		{"no version", "POST", "/uploads", tk, "", []string{"Upload-Length", "10", "Tus-Resumable", "0.2"}, 412, "FAILED_PRECONDITION", "Tus-Resumable", 0},
		{"no length", "POST", "/uploads", tk, "", nil, 400, "INVALID_ARGUMENT", "Upload-Length", 0},
		{"negative length", "POST", "/uploads", tk, "", []string{"Upload-Length", "-1"}, 400, "INVALID_ARGUMENT", "Upload-Length", 0},
		{"longer than the ticket", "POST", "/uploads", tk, "", []string{"Upload-Length", "11"}, 413, "INVALID_ARGUMENT", "Upload-Length", 10},
		{"shorter than the ticket", "POST", "/uploads", tk, "", []string{"Upload-Length", "9"}, 400, "INVALID_ARGUMENT", "Upload-Length", 0},
		{"deferred length", "POST", "/uploads", tk, "", []string{"Upload-Defer-Length", "1"}, 400, "INVALID_ARGUMENT", "Upload-Defer-Length", 0},
		{"an mtime not in base64", "POST", "/uploads", tk, "", []string{"Upload-Length", "10", "Upload-Metadata", "mtime 1.5"}, 400, "INVALID_ARGUMENT", "Upload-Metadata", 0},
		{"an mtime that is not a number", "POST", "/uploads", tk, "", []string{"Upload-Length", "10", "Upload-Metadata", mtime("now")}, 400, "INVALID_ARGUMENT", "Upload-Metadata", 0},
		{"an mtime before all files", "POST", "/uploads", tk, "", []string{"Upload-Length", "10", "Upload-Metadata", mtime("-1")}, 400, "INVALID_ARGUMENT", "Upload-Metadata", 0},
		{"an mtime after all files", "POST", "/uploads", tk, "", []string{"Upload-Length", "10", "Upload-Metadata", mtime("7258118400")}, 400, "INVALID_ARGUMENT", "Upload-Metadata", 0},
		{"an mtime with too many digits", "POST", "/uploads", tk, "", []string{"Upload-Length", "10", "Upload-Metadata", mtime("1.0000000001")}, 400, "INVALID_ARGUMENT", "Upload-Metadata", 0},
		{"no such folder", "POST", "/uploads", h.Signer.Sign(elsewhere), "", []string{"Upload-Length", "10"}, 404, "NOT_FOUND", "", 0},
		{"path leaves", "POST", "/uploads", h.Ticket("upload", "../f", 10), "", []string{"Upload-Length", "10"}, 400, "INVALID_ARGUMENT", "", 0},
		{"absolute path", "POST", "/uploads", h.Ticket("upload", "/f", 10), "", []string{"Upload-Length", "10"}, 400, "INVALID_ARGUMENT", "", 0},
		{"through a link", "POST", "/uploads", h.Ticket("upload", "etc/f", 10), "", []string{"Upload-Length", "10"}, 400, "INVALID_ARGUMENT", "", 0},
		{"control character", "POST", "/uploads", h.Ticket("upload", "a\nb", 10), "", []string{"Upload-Length", "10"}, 400, "INVALID_ARGUMENT", "", 0},
		{"onto a directory", "POST", "/uploads", h.Ticket("upload", "dir", 10), "", []string{"Upload-Length", "10"}, 409, "FAILED_PRECONDITION", "", 0},
		{"unknown upload", "PATCH", "/uploads/" + strings.Repeat("0", 32), tk, "x", []string{"Upload-Offset", "0"}, 404, "NOT_FOUND", "", 0},
		{"odd upload id", "PATCH", "/uploads/..%2f..%2fx", tk, "x", []string{"Upload-Offset", "0"}, 404, "NOT_FOUND", "", 0},
		{"another's upload", "PATCH", at, h.Signer.Sign(stranger), "x", []string{"Upload-Offset", "4"}, 404, "NOT_FOUND", "", 0},
		{"offset behind", "PATCH", at, tk, "x", []string{"Upload-Offset", "3"}, 409, "ABORTED", "Upload-Offset", 4},
		{"offset ahead", "PATCH", at, tk, "x", []string{"Upload-Offset", "5"}, 409, "ABORTED", "Upload-Offset", 4},
		{"no offset", "PATCH", at, tk, "x", nil, 400, "INVALID_ARGUMENT", "Upload-Offset", 0},
		{"wrong type", "PATCH", at, tk, "x", []string{"Upload-Offset", "4", "Content-Type", "text/plain"}, 415, "INVALID_ARGUMENT", "Content-Type", 0},
		{"longer than declared", "PATCH", at, tk, "4567890", []string{"Upload-Offset", "4"}, 413, "INVALID_ARGUMENT", "Upload-Length", 10},
		{"unknown checksum", "PATCH", at, tk, "4", []string{"Upload-Offset", "4", "Upload-Checksum", "crc9 AAAA"}, 400, "INVALID_ARGUMENT", "Upload-Checksum", 0},
		{"wrong checksum", "PATCH", at, tk, "4", []string{"Upload-Offset", "4", "Upload-Checksum", "sha1 " + strings.Repeat("A", 27) + "="}, 460, "INVALID_ARGUMENT", "Upload-Checksum", 0},
		{"nowhere", "GET", "/nowhere", tk, "", nil, 404, "NOT_FOUND", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var body io.Reader
			if tc.body != "" {
				body = strings.NewReader(tc.body)
			}
			resp := h.Tus(tc.method, tc.path, tc.ticket, body, tc.headers...)
			code, field, limit := h.Problem(resp)
			if resp.StatusCode != tc.status || code != tc.code || field != tc.field || limit != tc.limit {
				t.Errorf("got %d %s field %q limit %v", resp.StatusCode, code, field, limit)
			}
		})
	}
	// A body without a length that turns out to be too long is discarded.
	resp := h.Tus("PATCH", at, tk, struct{ io.Reader }{strings.NewReader("4567890")}, "Upload-Offset", "4")
	if code, _, _ := h.Problem(resp); resp.StatusCode != 413 || code != "INVALID_ARGUMENT" {
		t.Errorf("chunked and too long: %s", resp.Status)
	}
	if got := h.Offset(at, tk); got != 4 {
		t.Fatalf("offset %d after refusals, want 4", got)
	}
	sum := sha256.Sum256([]byte("456789"))
	resp = h.Tus("PATCH", at, tk, strings.NewReader("456789"), "Upload-Offset", "4",
		"Upload-Checksum", "sha256 "+base64.StdEncoding.EncodeToString(sum[:]))
	if resp.StatusCode != 204 {
		t.Fatalf("right checksum: %s", resp.Status)
	}
	h.WantFile("f", []byte("0123456789"))
	// Appending to a complete upload is refused and changes nothing.
	if resp := h.Tus("PATCH", at, tk, strings.NewReader("x"), "Upload-Offset", "10"); resp.StatusCode != 413 {
		t.Errorf("after the end: %s", resp.Status)
	}
	h.WantFile("f", []byte("0123456789"))
}

func TestUploadTerminated(t *testing.T) {
	h := storagetest.New(t)
	tk := h.Ticket("upload", "f", 10)
	at := h.Begin(tk, 10)
	if resp := h.Tus("DELETE", at, tk, nil); resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	if resp := h.Tus("HEAD", at, tk, nil); resp.StatusCode != 410 {
		t.Errorf("HEAD: %s", resp.Status)
	}
	if resp := h.Tus("POST", "/uploads", tk, nil, "Upload-Length", "10"); resp.StatusCode != 409 {
		t.Errorf("ticket used again: %s", resp.Status)
	}
}

func TestUploadKeepsCooperativeLimit(t *testing.T) {
	h := storagetest.New(t)
	limit := int64(100_000)
	set := func() {
		t.Helper()
		if _, err := h.API.SetScopeLimit(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope, LimitBytes: &limit}); err != nil {
			t.Fatal(err)
		}
	}
	set()
	post := func(path string, size int64) int {
		resp := h.Tus("POST", "/uploads", h.Ticket("upload", path, size), nil, "Upload-Length", strconv.FormatInt(size, 10))
		return resp.StatusCode
	}
	if got := post("a", 60_000); got != 201 {
		t.Fatalf("first: %d", got)
	}
	if got := post("b", 60_000); got != http.StatusInsufficientStorage {
		t.Errorf("second, beside a promise of the first: %d", got)
	}
	limit = 1 << 20
	set()
	if got := post("c", 60_000); got != 201 {
		t.Errorf("after raising the limit: %d", got)
	}
	if got := post("d", 1<<60); got != http.StatusInsufficientStorage {
		t.Errorf("larger than the disk: %d", got)
	}
}

func TestOptions(t *testing.T) {
	h := storagetest.New(t)
	resp := h.Tus("OPTIONS", "/uploads", "", nil, "Origin", "https://x.example")
	if resp.StatusCode != 204 || resp.Header.Get("Tus-Extension") != "creation,termination,expiration,checksum" ||
		resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	h.Stop()
	h.Config.Origins = []string{"https://x.example"}
	h.Start()
	for origin, want := range map[string]string{"https://x.example": "https://x.example", "https://y.example": ""} {
		resp := h.Tus("OPTIONS", "/uploads", "", nil, "Origin", origin)
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("origin %s: allowed %q", origin, got)
		}
	}
}

// An upload that was not continued for a day is deleted, and a recent one stays.
func TestAbandonedUploadsAreSwept(t *testing.T) {
	h := storagetest.New(t)
	tk := h.Ticket("upload", "old", 10)
	old := h.Begin(tk, 10)
	if resp := h.Tus("PATCH", old, tk, strings.NewReader("01234"), "Upload-Offset", "0"); resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	fresh := h.Begin(h.Ticket("upload", "fresh", 10), 10)
	live := h.Begin(h.Ticket("upload", "live ticket", 10), 10)
	dir := filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload")
	names := func(at string) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, filepath.Base(at)+".*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	h.Stop()
	// A day passes: the files become older, and the old upload's ticket expires.
	note := filepath.Join(dir, filepath.Base(old)+".json")
	raw, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	var u map[string]any
	if err := json.Unmarshal(raw, &u); err != nil {
		t.Fatal(err)
	}
	u["Claims"].(map[string]any)["Expires"] = time.Now().Add(-time.Hour).UTC()
	if raw, err = json.Marshal(u); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(note, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	ago := time.Now().Add(-25 * time.Hour)
	for _, f := range append(names(old), names(live)...) {
		if err := os.Chtimes(f, ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	h.Start() // sweeps
	wait.Until(t, "the old upload swept", func() bool { return len(names(old)) == 0 })
	if len(names(fresh)) != 2 || len(names(live)) != 2 {
		t.Errorf("fresh upload: %v, one whose ticket is still good: %v", names(fresh), names(live))
	}
	if resp := h.Tus("HEAD", old, tk, nil); resp.StatusCode != 404 {
		t.Errorf("swept upload: %s", resp.Status)
	}
}

// Two proxies serve one volume, and an upload can continue at either of them.
func TestUploadThroughTwoProxies(t *testing.T) {
	first := storagetest.New(t)
	second := &storagetest.Host{TB: t, Config: first.Config, Mount: first.Mount, Signer: first.Signer, Ref: first.Ref, Path: first.Path}
	second.Config.Name, second.Config.Dir = "s2", t.TempDir()
	second.Config.Volumes = slices.Clone(first.Config.Volumes)
	second.Config.Volumes[0].Create = false // the first proxy has initialized the volume
	second.Start()
	defer second.Stop()
	data := storagetest.Random(1 << 20)
	tk := first.Ticket("upload", "f", int64(len(data)))
	at := first.Begin(tk, int64(len(data)))
	for i, step := 0, len(data)/8; i < 8; i++ {
		h := first
		if i%2 == 1 {
			h = second
		}
		resp := h.Tus("PATCH", at, tk, bytes.NewReader(data[i*step:(i+1)*step]), "Upload-Offset", strconv.Itoa(i*step))
		if resp.StatusCode != 204 {
			t.Fatalf("part %d: %s", i, resp.Status)
		}
	}
	first.WantFile("f", data)
	one := first.Ticket("upload", "one writer", 8)
	where := first.Begin(one, 8)
	pr, pw := io.Pipe()
	defer pw.Close()
	ended := make(chan error, 1)
	go func() {
		resp, err := first.Try(context.Background(), "PATCH", where, one, pr, "Upload-Offset", "0")
		if err == nil && resp.StatusCode != 204 {
			err = errors.New(resp.Status)
		}
		ended <- err
	}()
	if _, err := pw.Write([]byte("0123")); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(first.Mount, strings.ReplaceAll(first.Ref.Scope, "-", ""), ".upload", filepath.Base(where)+".part")
	wait.Until(t, "first bytes", func() bool {
		st, err := os.Stat(part)
		return err == nil && st.Size() == 4
	})
	for _, method := range []string{"HEAD", "PATCH", "DELETE"} {
		resp := second.Tus(method, where, one, strings.NewReader("4567"), "Upload-Offset", "4")
		if resp.StatusCode != http.StatusConflict {
			t.Errorf("%s at the other proxy while one writes: %s", method, resp.Status)
		}
	}
	if _, err := pw.Write([]byte("45")); err != nil {
		t.Fatal(err)
	}
	pw.CloseWithError(io.EOF)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := second.Offset(where, one); got != 6 {
		t.Errorf("offset %d", got)
	}
	if resp := second.Tus("PATCH", where, one, strings.NewReader("67"), "Upload-Offset", "6"); resp.StatusCode != 204 {
		t.Error(resp.Status)
	}
	first.WantFile("one writer", []byte("01234567"))
	if resp := second.Tus("POST", "/uploads", tk, nil, "Upload-Length", strconv.Itoa(len(data))); resp.StatusCode != 409 {
		t.Errorf("the ticket used again at the other proxy: %s", resp.Status)
	}
}

func mtime(text string) string { return "mtime " + base64.StdEncoding.EncodeToString([]byte(text)) }

// A file gets the modification time of its uploader, even if another request ends the upload. Its
// entity tag still differs from that of the old file.
func TestUploadKeepsItsTime(t *testing.T) {
	h := storagetest.New(t)
	tags := map[string]bool{}
	for i, one := range []struct{ metadata, want string }{
		{mtime("1700000000.25"), "2023-11-14T22:13:20.25Z"},
		{"filename ZQ==," + mtime("1700000000"), "2023-11-14T22:13:20Z"},
		{"filename ZQ==, is_private, " + mtime("0"), "1970-01-01T00:00:00Z"},
		{"filename ZQ==", ""},
	} {
		for _, body := range []string{"", "data"} {
			tk := h.Ticket("upload", fmt.Sprint("f", len(body)), int64(len(body)))
			resp := h.Tus("POST", "/uploads", tk, nil, "Upload-Length", strconv.Itoa(len(body)), "Upload-Metadata", one.metadata)
			if resp.StatusCode != http.StatusCreated {
				t.Fatal(resp.Status)
			}
			at, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			if body != "" {
				h.Tus("PATCH", at.Path, tk, strings.NewReader(body[:2]), "Upload-Offset", "0")
				h.Tus("PATCH", at.Path, tk, strings.NewReader(body[2:]), "Upload-Offset", "2")
			}
			info, err := os.Stat(filepath.Join(h.Path, fmt.Sprint("f", len(body))))
			if err != nil {
				t.Fatal(err)
			}
			got := info.ModTime().UTC().Format(time.RFC3339Nano)
			if one.want == "" && time.Since(info.ModTime()).Abs() < time.Hour {
				got = ""
			}
			if got != one.want {
				t.Errorf("%s: %s, want %s", one.metadata, got, one.want)
			}
			down := h.Tus("HEAD", "/download", h.Ticket("download", fmt.Sprint("f", len(body)), 0), nil)
			if tag := down.Header.Get("ETag"); tag == "" || tags[tag] {
				t.Errorf("upload %d has the ETag %s of another", i, tag)
			} else {
				tags[tag] = true
			}
		}
	}
}

// An editor can replace the version of a file that it has read, but not a later version of another
// writer.
func TestUploadReplacesTheFileItMeans(t *testing.T) {
	h := storagetest.New(t)
	put := func(body, tag string) *http.Response {
		t.Helper()
		tk := h.Ticket("upload", "notes.txt", int64(len(body)))
		resp := h.Tus("POST", "/uploads", tk, nil, "Upload-Length", strconv.Itoa(len(body)), "If-Match", tag)
		if body == "" || resp.StatusCode != http.StatusCreated {
			return resp
		}
		at, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		resp = h.Tus("PATCH", at.Path, tk, strings.NewReader(body), "Upload-Offset", "0")
		if resp.StatusCode == http.StatusPreconditionFailed { // a request for the offset must not publish it either
			if again := h.Tus("HEAD", at.Path, tk, nil); again.StatusCode != http.StatusPreconditionFailed {
				t.Errorf("HEAD: %s", again.Status)
			}
			if end := h.Tus("DELETE", at.Path, tk, nil); end.StatusCode != http.StatusNoContent {
				t.Errorf("DELETE: %s", end.Status)
			}
		}
		return resp
	}
	read := func() string {
		t.Helper()
		resp := h.Tus("HEAD", "/download", h.Ticket("download", "notes.txt", 0), nil)
		return resp.Header.Get("ETag")
	}
	refused := func(body, tag string) {
		t.Helper()
		resp := put(body, tag)
		if code, _, _ := h.Problem(resp); resp.StatusCode != http.StatusPreconditionFailed || code != "FAILED_PRECONDITION" {
			t.Errorf("%q as %s: %s %s", body, tag, resp.Status, code)
		}
	}
	refused("nobody's", `"none"`)
	if _, err := os.Stat(filepath.Join(h.Path, "notes.txt")); !os.IsNotExist(err) {
		t.Fatalf("created although the file to replace is missing: %v", err)
	}
	put("first", "")
	was := read()
	if resp := put("second", was); resp.StatusCode != http.StatusNoContent {
		t.Fatal(resp.Status)
	}
	h.WantFile("notes.txt", []byte("second"))
	refused("too late", was)
	refused("", was)
	h.WantFile("notes.txt", []byte("second"))

	// A session writes the file, with the same size and the old time.
	now := read()
	at := filepath.Join(h.Path, "notes.txt")
	info, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(at, []byte("SECOND"), 0o644), os.Chtimes(at, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	refused("third", now)
	h.WantFile("notes.txt", []byte("SECOND"))
	if resp := put("", read()); resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status)
	}
	h.WantFile("notes.txt", nil)
}
