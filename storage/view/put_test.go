package view_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagetest"
)

func modified(h *storagetest.Host, name string) time.Time {
	h.TB.Helper()
	st, err := os.Stat(filepath.Join(h.Path, name))
	if err != nil {
		h.TB.Fatal(err)
	}
	return st.ModTime()
}

func content(h *storagetest.Host, name string) string {
	h.TB.Helper()
	raw, err := os.ReadFile(filepath.Join(h.Path, name))
	if err != nil {
		h.TB.Fatal(err)
	}
	return string(raw)
}

// A PUT with a part of a file is rejected.
func TestPutRefusesParts(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	h.Write("f", "01234567890123456789")
	if resp, words := h.WebDAV("PUT", "/mine/data/f", "rw", "xxxxxx", "Content-Range", "bytes 5-10/20"); resp.StatusCode != http.StatusBadRequest || !strings.Contains(words, "Content-Range") {
		t.Errorf("%s: %s", resp.Status, words)
	}
	if got := content(h, "f"); got != "01234567890123456789" {
		t.Errorf("the file is %q", got)
	}
}

func TestPutSaysWhetherItReplaced(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	for i, want := range []int{http.StatusCreated, http.StatusNoContent, http.StatusNoContent} {
		if resp, words := h.WebDAV("PUT", "/mine/data/f", "rw", fmt.Sprint(i)); resp.StatusCode != want {
			t.Errorf("%d: %s %s", i, resp.Status, words)
		}
	}
	if got := content(h, "f"); got != "2" {
		t.Errorf("the file is %q", got)
	}
}

// Clients that copy files preserve their times.
func TestPutKeepsTimes(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	resp, words := h.WebDAV("PUT", "/mine/data/f", "rw", "x", "X-OC-Mtime", "981173106")
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("X-OC-Mtime") != "accepted" {
		t.Errorf("%s %v: %s", resp.Status, resp.Header, words)
	}
	if got := modified(h, "f"); !got.Equal(time.Unix(981173106, 0)) {
		t.Errorf("changed at %v", got)
	}
	for _, text := range []string{"yesterday", "-1", "NaN", "1e300"} {
		if resp, words := h.WebDAV("PUT", "/mine/data/g", "rw", "x", "X-OC-Mtime", text); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %s %s", text, resp.Status, words)
		}
	}
	if resp, _ := h.WebDAV("PUT", "/mine/data/g", "rw", "x"); resp.Header.Get("X-OC-Mtime") != "" {
		t.Error("an invalid time was accepted")
	}
	patch := func(properties string) (int, string) {
		t.Helper()
		resp, body := h.WebDAV("PROPPATCH", "/mine/data/f", "rw", `<D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:"><D:set><D:prop>`+properties+`</D:prop></D:set></D:propertyupdate>`)
		return resp.StatusCode, body
	}
	explorer := `<Z:Win32CreationTime>Tue, 02 Jan 2001 03:04:05 GMT</Z:Win32CreationTime><Z:Win32LastAccessTime>Tue, 02 Jan 2001 03:04:05 GMT</Z:Win32LastAccessTime>` +
		`<Z:Win32LastModifiedTime>Wed, 03 Jan 2001 03:04:05 GMT</Z:Win32LastModifiedTime><Z:Win32FileAttributes>00000020</Z:Win32FileAttributes>`
	if status, body := patch(explorer); status != http.StatusMultiStatus || strings.Contains(body, "403") || !strings.Contains(body, "200 OK") {
		t.Errorf("%d %s", status, body)
	}
	want := time.Date(2001, 1, 3, 3, 4, 5, 0, time.UTC)
	if got := modified(h, "f"); !got.Equal(want) {
		t.Errorf("changed at %v", got)
	}
	for name, properties := range map[string]string{
		"no time":          `<Z:Win32LastModifiedTime>soon</Z:Win32LastModifiedTime>`,
		"another property": `<Z:Win32LastModifiedTime>Wed, 03 Jan 2003 03:04:05 GMT</Z:Win32LastModifiedTime><Z:Colour>blue</Z:Colour>`,
	} {
		if _, body := patch(properties); !strings.Contains(body, "403") {
			t.Errorf("%s: %s", name, body)
		}
	}
	if got := modified(h, "f"); !got.Equal(want) {
		t.Errorf("a rejected change took effect: %v", got)
	}
}

// Writes to one file happen one after the other, and readers always see a complete file.
func TestPutsOfOneFileWait(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			body := strings.Repeat(string(rune('a'+i)), 100_000)
			if resp, words := h.WebDAV("PUT", "/mine/data/f", "rw", body); resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusNoContent {
				t.Errorf("writer %d: %s %s", i, resp.Status, words)
			}
		})
	}
	wg.Wait()
	if got := content(h, "f"); got != strings.Repeat(got[:1], 100_000) {
		t.Error("the file is of several writers")
	}
	// A write does not wait for a client's lock.
	lock := `<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>`
	resp, body := h.WebDAV("LOCK", "/mine/data/f", "rw", lock)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, body)
	}
	if resp, _ := h.WebDAV("PUT", "/mine/data/f", "rw", "x"); resp.StatusCode != http.StatusLocked {
		t.Errorf("over a lock: %s", resp.Status)
	}
}

// The directory of a file that is deleted while the file is uploaded is not created again.
func TestPutIntoDirectoryThatGoes(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	h.Write("dir/other", "x")
	reader, writer := io.Pipe()
	done := make(chan int, 1)
	go func() {
		resp, _ := h.WebDAVFrom("PUT", "/mine/data/dir/f", "rw", reader)
		done <- resp.StatusCode
	}()
	if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the upload has begun", func() bool { return len(h.Staged()) > 0 })
	h.DeleteFiles(true, "dir")
	writer.Close()
	if got := <-done; got != http.StatusConflict {
		t.Errorf("answered %d", got)
	}
	if _, err := os.Lstat(filepath.Join(h.Path, "dir")); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	if left := h.Staged(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The responses that HTTP requires for methods and ranges that a resource does not support.
func TestMethodsAndRangeUnits(t *testing.T) {
	t.Parallel()
	h := storagetest.New(t)
	h.Write("f", "0123456789")
	at := h.HTTP.URL + "/storage/download?ticket=" + h.Ticket("download", "f", 0)
	for _, c := range []struct {
		name, method, path, unit string
		status                   int
		allow                    string
	}{
		{"a range", "GET", at, "bytes=0-5", http.StatusPartialContent, ""},
		{"another unit", "GET", at, "lines=0-5", http.StatusOK, ""},
		{"no unit", "GET", at, "x", http.StatusOK, ""},
		{"POST of a download", "POST", at, "", http.StatusMethodNotAllowed, "GET, HEAD, OPTIONS"},
		{"PUT of an archive", "PUT", h.HTTP.URL + "/storage/archive", "", http.StatusMethodNotAllowed, "GET, HEAD, OPTIONS"},
		{"GET of uploads", "GET", h.HTTP.URL + "/storage/uploads", "", http.StatusMethodNotAllowed, "POST, OPTIONS"},
		{"PUT of an upload", "PUT", h.HTTP.URL + "/storage/uploads/1", "", http.StatusMethodNotAllowed, "HEAD, PATCH, DELETE, OPTIONS"},
		{"nothing", "POST", h.HTTP.URL + "/storage/nothing", "", http.StatusNotFound, ""},
	} {
		r, err := http.NewRequestWithContext(h.Ctx(), c.method, c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.unit != "" {
			r.Header.Set("Range", c.unit)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || resp.Header.Get("Allow") != c.allow {
			t.Errorf("%s: %s, Allow %q", c.name, resp.Status, resp.Header.Get("Allow"))
		}
	}
}
