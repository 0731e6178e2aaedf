package volume_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// seldom makes the plugin measure usage only once in the test, with this number of bytes left in
// the scope.
func seldom(h *storagetest.Host, left int64) {
	h.TB.Helper()
	h.Stop()
	h.Config.Volumes[0].OptionsJSON = `{"usage_max_age_s": 86400}`
	if h.Config.SFTP != nil { // the proxy has closed it
		l, err := net.Listen("tcp", h.Config.SFTP.Addr().String())
		if err != nil {
			h.TB.Fatal(err)
		}
		h.Config.SFTP = l
	}
	h.Start()
	s, err := h.API.GetScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope})
	if err != nil {
		h.TB.Fatal(err)
	}
	limit := s.GetUsedBytes() + left
	if _, err := h.API.SetScopeLimit(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope, LimitBytes: &limit}); err != nil {
		h.TB.Fatal(err)
	}
}

// zeros is a source of bytes without a length.
func zeros(n int64) io.Reader {
	return struct{ io.Reader }{io.LimitReader(endless{}, n)}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// nothing checks that neither the file nor a part of it exists.
func nothing(h *storagetest.Host, name string) {
	h.TB.Helper()
	if st, err := os.Lstat(filepath.Join(h.Path, name)); !os.IsNotExist(err) {
		h.TB.Errorf("%s is there: %v, %v", name, st, err)
	}
	if left := h.Staged(); len(left) > 0 {
		h.TB.Errorf("left of %s: %q", name, left)
	}
}

// Bytes of running transfers count, however rarely usage is measured.
func TestLimitHoldsForSFTP(t *testing.T) {
	h, _, address := storagetest.NewSFTP(t)
	seldom(h, 20<<20)
	big, fits := filepath.Join(t.TempDir(), "big"), filepath.Join(t.TempDir(), "fits")
	for name, size := range map[string]int64{big: 100 << 20, fits: 12 << 20} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := storagetest.OpenSSH(t, address, "rw", "put "+big+" mine/data/big")
	if !strings.Contains(out, "the scope's limit is") {
		t.Errorf("no reason is shown: %s", out)
	}
	nothing(h, "big")
	out, _ = storagetest.OpenSSH(t, address, "rw", "put "+fits+" mine/data/one", "put "+fits+" mine/data/two")
	if !strings.Contains(out, "the scope's limit is") {
		t.Errorf("no reason is shown: %s", out)
	}
	if st, err := os.Stat(filepath.Join(h.Path, "one")); err != nil || st.Size() != 12<<20 {
		t.Errorf("a file that fits is missing: %v", err)
	}
	nothing(h, "two")
}

func TestLimitHoldsForWebDAVWithoutLength(t *testing.T) {
	h, _ := storagetest.NewViews(t)
	seldom(h, 20<<20)
	resp, words := h.WebDAVFrom("PUT", "/mine/data/big", "rw", zeros(300<<20))
	if resp.StatusCode != http.StatusInsufficientStorage || !strings.Contains(words, "limit") {
		t.Errorf("%s: %s", resp.Status, words)
	}
	nothing(h, "big")
	for i, want := range []int{http.StatusCreated, http.StatusInsufficientStorage} {
		name := fmt.Sprint("f", i)
		if resp, words := h.WebDAVFrom("PUT", "/mine/data/"+name, "rw", zeros(12<<20)); resp.StatusCode != want {
			t.Errorf("%s: %s: %s", name, resp.Status, words)
		}
	}
	nothing(h, "f1")
}

func TestLimitHoldsForTwoUploads(t *testing.T) {
	h := storagetest.New(t)
	seldom(h, 20<<20)
	const size, sent = 18 << 20, 17 << 20
	a := h.Ticket("upload", "a", size)
	at := h.Begin(a, size)
	resp := h.Tus("PATCH", at, a, bytes.NewReader(make([]byte, sent)), "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("first upload: %s", resp.Status)
	}
	post := func(name string, size int64) int {
		t.Helper()
		return h.Tus("POST", "/uploads", h.Ticket("upload", name, size), nil, "Upload-Length", strconv.FormatInt(size, 10)).StatusCode
	}
	if got := post("b", size); got != http.StatusInsufficientStorage {
		t.Errorf("second upload beside 17 of 18 MiB of the first: %d", got)
	}
	if got := post("c", 1<<20); got != http.StatusCreated {
		t.Errorf("an upload that fits: %d", got)
	}
	// A copy also takes space, and respects the space that is reserved for uploads.
	h.Write("small", string(make([]byte, 4<<20)))
	results, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("small", "again")})
	if err == nil && results[0].Err() == nil {
		t.Errorf("a copy took room that uploads have: %v", results)
	} else if err != nil {
		storagetest.WantCode(t, err, codes.ResourceExhausted)
	}
	// A move from another scope does so, too.
	other := &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: other.Scope}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.API.CreateFolder(h.Ctx(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: other, Files: storagetest.Pairs("small", "small")}); err != nil {
		t.Fatal(err)
	}
	results, err = h.Transfer(true, &storagepb.TransferRequest{From: other, To: h.Ref, Files: storagetest.Pairs("small", "moved")})
	if err != nil || results[0].Err() == nil {
		t.Errorf("a move took room that uploads have: %v, %v", results, err)
	}
	// A cancelled upload frees its space.
	if resp := h.Tus("DELETE", at, a, nil); resp.StatusCode != http.StatusNoContent {
		t.Fatalf("end: %s", resp.Status)
	}
	if got := post("d", size); got != http.StatusCreated {
		t.Errorf("after the first was ended: %d", got)
	}
}

// WebDAV reports the free space of a folder and of the directory above it.
func TestQuotaProperties(t *testing.T) {
	h, _ := storagetest.NewViews(t)
	seldom(h, 20<<20)
	ask := `<propfind xmlns="DAV:"><prop><quota-available-bytes/><quota-used-bytes/></prop></propfind>`
	for _, path := range []string{"/mine/data/", "/mine/"} {
		resp, body := h.WebDAV("PROPFIND", path, "rw", ask, "Depth", "0")
		if resp.StatusCode != http.StatusMultiStatus || !strings.Contains(body, fmt.Sprintf("quota-available-bytes>%d<", 20<<20)) || !strings.Contains(body, "quota-used-bytes>") {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	if resp, body := h.WebDAV("PROPFIND", "/mine/data/", "rw", "", "Depth", "0"); resp.StatusCode != http.StatusMultiStatus || strings.Contains(body, "quota") {
		t.Errorf("all properties: %s %s", resp.Status, body)
	}
	if resp, words := h.WebDAVFrom("PUT", "/mine/data/f", "rw", zeros(5<<20)); resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", resp.Status, words)
	}
	if _, body := h.WebDAV("PROPFIND", "/mine/data/", "rw", ask, "Depth", "0"); !strings.Contains(body, fmt.Sprintf("quota-available-bytes>%d<", 15<<20)) {
		t.Errorf("bytes that were written since the measurement do not count: %s", body)
	}
}
