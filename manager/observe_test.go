package manager

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/testenv"
)

// The counter of requests does not prevent sendfile; otherwise, the process would copy every byte
// of a download through the manager's address.
func TestFilesReachTheConnection(t *testing.T) {
	m := &Manager{log: slog.New(slog.DiscardHandler)}
	const size = 1 << 20
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(m.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, path)
	})))
	handed := testenv.Handed(server)
	server.Start()
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
	server.Close() // waits for the handler
	if n := handed.Load(); n < size*9/10 {
		t.Errorf("the connection was handed %d bytes as a file, the rest was copied", n)
	}
}
