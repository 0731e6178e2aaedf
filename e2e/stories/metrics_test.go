package stories

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgentsServeMetrics reads the metrics of each agent's process at the address in its data
// directory.
func TestAgentsServeMetrics(t *testing.T) {
	for _, node := range nodes() {
		port, err := os.ReadFile(filepath.Join(platform.Data(), "agent", node, "metrics.port"))
		if err != nil {
			t.Fatal(err)
		}
		get := func(path string) (int, string) {
			t.Helper()
			resp, err := http.Get("http://127.0.0.1:" + strings.TrimSpace(string(port)) + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, string(text)
		}
		if code, text := get("/readyz"); code != http.StatusOK || !strings.HasPrefix(text, "kernels ok\nruntime ok\n") || !strings.HasSuffix(text, "managers ok\n") {
			t.Errorf("%s, ready: %d %q", node, code, text)
		}
		if code, text := get("/healthz"); code != http.StatusOK || text != "ok\n" {
			t.Errorf("%s, health: %d %q", node, code, text)
		}
		code, text := get("/metrics")
		for _, want := range []string{`berth_build_info{go_version="go`, `berth_managers_connected{role="agent"} 2`, `berth_agent_disk_free_bytes{disk="agent"}`, `berth_agent_plugin_up{plugin="mock"} 1`} {
			if code != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s, metrics: %d without %s", node, code, want)
			}
		}
	}
}
