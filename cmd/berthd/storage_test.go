package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// get sends a request to an address, and returns status 0 if no server answers.
func get(address, path string) (int, string) {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw)
}

// A storage proxy serves its metrics and health at a separate address, and not at the address for
// users.
func TestStorageServesMetrics(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	public := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := storageCommand()
	cmd.SetArgs([]string{"--data", dir, "--name", "s1", "--listen", public, "--log-level", "error"})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	address := ""
	wait.Until(t, "berthd storage is healthy", func() bool {
		if port, err := os.ReadFile(filepath.Join(dir, "metrics.port")); err == nil {
			address = "127.0.0.1:" + strings.TrimSpace(string(port))
			if status, _ := get(address, "/healthz"); status == http.StatusOK {
				return true
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("berthd storage ended: %v", err)
		default:
		}
		return false
	})
	if status, body := get(address, "/metrics"); status != http.StatusOK || !strings.Contains(body, "berth_storage_received_bytes_total") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d %.500s", status, body)
	}
	if status, body := get(address, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "managers unavailable") {
		t.Errorf("ready without a manager: %d %s", status, body)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if status, body := get(public, path); status != http.StatusNotFound {
			t.Errorf("%s for everybody: %d %.200s", path, status, body)
		}
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the data directory: %v, %v", st, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}
