package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// A manager serves its metrics and health at a separate address. At the address for users, metrics
// need a token.
func TestManagerServesMetrics(t *testing.T) {
	ops, public := freePort(t), freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := managerCommand()
	cmd.SetArgs([]string{
		"--postgres", testenv.Postgres(t), "--redis", testenv.Redis(t), "--etcd", testenv.Etcd(t), "--secrets", t.TempDir(),
		"--http", public, "--cluster", "127.0.0.1:0", "--metrics", ops, "--log-level", "error",
	})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	wait.Until(t, "berthd manager leads", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("berthd manager ended: %v", err)
		default:
		}
		status, body := get(ops, "/readyz")
		return status == http.StatusOK && strings.HasSuffix(body, "leader ok\n")
	})
	status, body := get(ops, "/metrics")
	for _, want := range []string{"berth_leader 1\n", `berth_sessions{status="running"} 0`, `berth_build_info{go_version="go`, "go_goroutines"} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("metrics: %d without %s", status, want)
		}
	}
	if status, _ := get(ops, "/healthz"); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	if status, body := get(public, "/metrics"); status != http.StatusUnauthorized {
		t.Errorf("metrics for everybody: %d %.200s", status, body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}
