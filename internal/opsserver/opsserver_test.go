package opsserver_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/opsserver"
)

func TestServer(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total"})
	registry.MustRegister(counter)
	counter.Inc()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var broken error
	hang := make(chan struct{})
	defer close(hang)
	checks := []opsserver.Check{
		{Name: "store", Probe: func(context.Context) error { return broken }},
		{Name: "cache", Optional: true, Probe: func(context.Context) error { return errors.New("away") }},
		{Name: "stuck", Optional: true, Probe: func(context.Context) error { <-hang; return nil }},
	}
	s := opsserver.New(l, registry, checks, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(raw)
	}
	if status, body := get("/metrics"); status != http.StatusOK || !strings.Contains(body, "things_total 1") {
		t.Errorf("metrics: %d %s", status, body)
	}
	if status, _ := get("/healthz"); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	if status, body := get("/readyz"); status != http.StatusOK || body != "store ok\ncache unavailable\nstuck unavailable\n" {
		t.Errorf("ready: %d %q", status, body)
	}
	broken = errors.New("gone")
	if status, body := get("/readyz"); status != http.StatusServiceUnavailable || !strings.HasPrefix(body, "store unavailable\n") {
		t.Errorf("not ready: %d %q", status, body)
	}
	if status, _ := get("/download"); status != http.StatusNotFound {
		t.Errorf("another path: %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}
