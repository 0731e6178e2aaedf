package storagetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/foldergroup"
)

// Tus sends one request of the protocol. The body of the answer is read into memory.
func (h *Host) Tus(method, path, ticket string, body io.Reader, headers ...string) *http.Response {
	h.TB.Helper()
	resp, err := h.Try(context.Background(), method, path, ticket, body, headers...)
	if err != nil {
		h.TB.Fatal(err)
	}
	return resp
}

// Try is Tus for a request that can fail.
func (h *Host) Try(ctx context.Context, method, path, ticket string, body io.Reader, headers ...string) (*http.Response, error) {
	if !strings.HasPrefix(path, "/storage") {
		path = "/storage" + path
	}
	req, err := http.NewRequestWithContext(ctx, method, h.HTTP.URL+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	if ticket != "" {
		req.Header.Set("Authorization", "Bearer "+ticket)
	}
	if method == "PATCH" {
		req.Header.Set("Content-Type", "application/offset+octet-stream")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	return resp, err
}

// Begin creates an upload and returns its path on the server.
func (h *Host) Begin(ticket string, size int64) string {
	h.TB.Helper()
	resp := h.Tus("POST", "/uploads", ticket, nil, "Upload-Length", strconv.FormatInt(size, 10))
	if resp.StatusCode != http.StatusCreated {
		b, _ := io.ReadAll(resp.Body)
		h.TB.Fatalf("create: %s %s", resp.Status, b)
	}
	at, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		h.TB.Fatal(err)
	}
	return at.Path
}

// Offset returns the number of bytes of an upload that the server has.
func (h *Host) Offset(at, ticket string) int64 {
	h.TB.Helper()
	resp := h.Tus("HEAD", at, ticket, nil)
	n, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
	if resp.StatusCode != 200 || err != nil || resp.Header.Get("Cache-Control") != "no-store" {
		h.TB.Fatalf("HEAD: %s %v", resp.Status, resp.Header)
	}
	return n
}

// Problem reads an error and checks the fields that every error must have.
func (h *Host) Problem(resp *http.Response) (code, field string, limit float64) {
	h.TB.Helper()
	var p map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		h.TB.Fatalf("%s: %v", resp.Status, err)
	}
	if resp.Header.Get("Content-Type") != "application/problem+json" || p["requestId"] == "" ||
		p["requestId"] != resp.Header.Get("X-Request-Id") || p["status"] != float64(resp.StatusCode) {
		h.TB.Errorf("problem %v with headers %v", p, resp.Header)
	}
	field, _ = p["field"].(string)
	if text, ok := p["limit"].(string); ok {
		var err error
		if limit, err = strconv.ParseFloat(text, 64); err != nil {
			h.TB.Errorf("limit %q: %v", text, err)
		}
	} else if p["limit"] != nil {
		h.TB.Errorf("limit %v is not a string", p["limit"])
	}
	return p["code"].(string), field, limit
}

// Random returns n random bytes, the same in every call.
func Random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{7})
	_, _ = r.Read(b)
	return b
}

// WantFile checks the content and mode of a file, and that its upload left no staged file.
func (h *Host) WantFile(path string, want []byte) {
	h.TB.Helper()
	full := filepath.Join(h.Path, path)
	got, err := os.ReadFile(full)
	if err != nil || !bytes.Equal(got, want) {
		h.TB.Errorf("%s: %d bytes, %v; want %d", path, len(got), err, len(want))
		return
	}
	if st, _ := os.Stat(full); st.Mode() != foldergroup.File {
		h.TB.Errorf("%s has mode %v", path, st.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(h.Path))), ".upload", "*.part")); len(left) > 0 {
		h.TB.Errorf("staging files left: %v", left)
	}
}
