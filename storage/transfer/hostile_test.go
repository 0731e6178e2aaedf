package transfer_test

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/storagetest"
)

// lie lists all paths on the volume, including those outside of a folder.
func lie(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Paths that would lead out of a folder, in every encoding that some program decodes, can neither
// be read nor written, over WebDAV and uploads.
func TestHostileAddresses(t *testing.T) {
	h, _ := storagetest.NewViews(t)
	h.Write("mine", "m")
	outside := filepath.Join(h.Mount, "outside")
	if err := os.WriteFile(outside, []byte("outside of it"), 0o644); err != nil {
		t.Fatal(err)
	}
	var ups = strings.Repeat("/..", 8)
	before := lie(t, h.Mount)
	for _, path := range []string{
		"/../outside", ups + "/outside", ups + "/etc/passwd", "/%2e%2e/outside", strings.ReplaceAll(ups, "/", "%2f") + "%2fetc%2fpasswd",
		"/..%2foutside", "/..%5coutside", `/..\outside`, "/%2fetc%2fpasswd", "//etc/passwd", "/a%00b", "/mine%00/../../outside",
		"/%c0%ae%c0%ae/outside", "/%c0%ae%c0%ae%c0%afoutside", "/%e0%80%ae%e0%80%ae/outside", "/..;/outside", "/.%2e/outside",
		"/%252e%252e/outside", "/x/..%2f..%2f..%2f..%2foutside",
	} {
		for _, method := range []string{"GET", "PROPFIND", "PUT", "MKCOL", "DELETE", "COPY", "MOVE", "POST", "LOCK"} {
			target := "/storage/dav/mine/data" + path
			if method == "POST" {
				target = "/storage/uploads" + path
			}
			source := target
			if method == "COPY" || method == "MOVE" { // from an existing file to a path that must not be created
				source = "/storage/dav/mine/data/mine"
			}
			status, answer := raw(h, t, method, source, target)
			if strings.Contains(answer, "outside of it") || strings.Contains(answer, "root:") {
				t.Errorf("%s %s: %d %.200s", method, path, status, answer)
			}
			if status >= 500 {
				t.Errorf("%s %s: %d", method, path, status)
			}
			// "..;" and names that are encoded twice are ordinary names.
			plain := strings.Contains(path, "..;") || strings.Contains(path, "%252e") || path == "/..%5coutside" || path == `/..\outside`
			if status < 300 && !plain && !inside(path) {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
	}
	folder := h.Path + "/"
	for _, path := range lie(t, h.Mount) {
		if !slices.Contains(before, path) && !strings.HasPrefix(path, folder) && !strings.Contains(path, "/.upload") {
			t.Errorf("created outside of the folder: %s", path)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// inside reports whether a path, with its dots resolved, is below the folder.
func inside(path string) bool {
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.Contains(decoded, "\x00") || strings.HasPrefix(decoded, "//") {
		return false
	}
	depth := 0
	for part := range strings.SplitSeq(strings.Trim(decoded, "/"), "/") {
		switch part {
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}

// raw sends a request with a path that no client has normalized.
func raw(h *storagetest.Host, t *testing.T, method, path, destination string) (status int, answer string) {
	t.Helper()
	body := ""
	if method == "PUT" {
		body = "x"
	}
	answer = say(h, t, fmt.Sprintf("%s %s HTTP/1.1\r\nDestination: %s%s\r\nContent-Length: %d", method, path, h.HTTP.URL, destination, len(body)), body)
	if _, err := fmt.Sscanf(answer, "HTTP/1.1 %d", &status); err != nil {
		t.Fatalf("%s %s: %q", method, path, answer)
	}
	return status, answer
}

// say sends a request without changes, with credentials, and returns the whole response.
func say(h *storagetest.Host, t *testing.T, head, body string) string {
	t.Helper()
	at, err := url.Parse(h.HTTP.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "%s\r\nHost: %s\r\nConnection: close\r\nAuthorization: Basic %s\r\n\r\n%s", head, at.Host, basic("me@example.org", "rw"), body)
	all, err := io.ReadAll(c)
	if err != nil && len(all) == 0 {
		t.Fatal(err)
	}
	return string(all)
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
}

// Invalid ranges and too many ranges are rejected at little cost.
func TestHostileRanges(t *testing.T) {
	h, _ := storagetest.NewViews(t)
	h.Write("f", strings.Repeat("x", 1<<20))
	tk := h.Ticket("download", "f", 0)
	for _, tc := range []struct {
		ranges string
		status int
	}{
		{"bytes=0-0", 206}, {"bytes=0-0,5-5", 206}, {"bytes=" + strings.Repeat("0-0,", 15) + "0-0", 206},
		{"bytes=" + strings.Repeat("0-0,", 16) + "0-0", 416}, {"bytes=" + strings.Repeat("0-0,", 9_999) + "0-0", 416},
		{"bytes=-0", 416}, {"bytes=--5", 416}, {"bytes=5-2", 416}, {"bytes=-1-5", 416}, {"bytes=1048576-", 416},
		{"bytes=99999999999999999999-", 416}, {"bytes=a-b", 416}, {"bytes=", 416}, {"lines=1-2", 200},
	} {
		for kind, resp := range map[string]*http.Response{
			"download": h.Tus("GET", "/download", tk, nil, "Range", tc.ranges),
			"webdav":   first(h.WebDAV("GET", "/mine/data/f", "rw", "", "Range", tc.ranges)),
		} {
			if resp.StatusCode != tc.status && !(tc.ranges == "bytes=" && resp.StatusCode == 200) {
				t.Errorf("%s of %.40s: %d, want %d", kind, tc.ranges, resp.StatusCode, tc.status)
			}
			resp.Body.Close()
		}
	}
}

func first(r *http.Response, _ string) *http.Response { return r }

// An upload of a petabyte is rejected when it is declared, over every protocol, and uses no space.
func TestHugeUploads(t *testing.T) {
	h, _ := storagetest.NewViews(t)
	var was, is unix.Statfs_t
	if err := unix.Statfs(h.Mount, &was); err != nil {
		t.Fatal(err)
	}
	before := lie(t, h.Mount)
	for _, size := range []int64{1 << 50, 1<<63 - 1} {
		length := fmt.Sprint(size)
		if resp := h.Tus("POST", "/uploads", h.Ticket("upload", "f", size), nil, "Upload-Length", length); resp.StatusCode != 507 {
			t.Errorf("%s bytes: %s", length, resp.Status)
		}
		if resp := h.Tus("POST", "/uploads", h.Ticket("upload", "f", 10), nil, "Upload-Length", length); resp.StatusCode != 413 {
			t.Errorf("%s bytes with a ticket for ten: %s", length, resp.Status)
		}
	}
	for _, length := range []string{"9223372036854775808", "1e15", "0x10", " ", "1,2", "-1"} {
		if resp := h.Tus("POST", "/uploads", h.Ticket("upload", "f", 10), nil, "Upload-Length", length); resp.StatusCode != 400 {
			t.Errorf("%q bytes: %s", length, resp.Status)
		}
	}
	if answer := say(h, t, fmt.Sprintf("PUT /storage/dav/mine/data/f HTTP/1.1\r\nContent-Length: %d", int64(1)<<50), "x"); !strings.HasPrefix(answer, "HTTP/1.1 413") {
		t.Errorf("WebDAV: %q", answer)
	}
	if now := lie(t, h.Mount); !slices.Equal(now, before) {
		for _, path := range now {
			if !slices.Contains(before, path) {
				if info, err := os.Stat(path); err == nil && !info.IsDir() {
					t.Errorf("left: %s", path)
				}
			}
		}
	}
	if err := unix.Statfs(h.Mount, &is); err != nil {
		t.Fatal(err)
	}
	if gone := (int64(was.Bavail) - int64(is.Bavail)) * is.Bsize; gone > 1<<40 {
		t.Errorf("%d bytes are missing", gone)
	}
}
