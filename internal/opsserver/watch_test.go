package opsserver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// TestWatcherWritesTwoLines stops and restarts a store twice.
func TestWatcherWritesTwoLines(t *testing.T) {
	var mu sync.Mutex
	var away error
	looks := 0
	set := func(err error) {
		mu.Lock()
		away, looks = err, 0
		mu.Unlock()
	}
	text := &safeBuffer{}
	registry := prometheus.NewRegistry()
	w := NewWatcher("manager", []Check{{Name: "redis", Probe: func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		looks++
		return away
	}}}, registry, slog.New(slog.NewTextHandler(text, nil)))
	w.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	looked := func() {
		t.Helper()
		wait.Until(t, "the stores are checked", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return looks > 3 // the third check began after the change, and its result was recorded
		})
	}
	looked()
	for outage := 1; outage <= 2; outage++ {
		set(errors.New("connection refused"))
		looked()
		if n := value(t, registry); n != 0 {
			t.Errorf("the metric of an unavailable store is %v", n)
		}
		set(nil)
		looked()
		if n := value(t, registry); n != 1 {
			t.Errorf("the metric of a store that is back is %v", n)
		}
		lines := text.String()
		if n := strings.Count(lines, `level=WARN msg="dependency is unavailable" dependency=redis`); n != outage {
			t.Errorf("%d lines about the outage after outage %d:\n%s", n, outage, lines)
		}
		if n := strings.Count(lines, `level=INFO msg="dependency is back" dependency=redis away_seconds=`); n != outage {
			t.Errorf("%d lines say that it is back after outage %d:\n%s", n, outage, lines)
		}
	}
	cancel()
	<-done
}

// TestWatcherWaitsAtTheStart begins with a dependency that does not work.
func TestWatcherWaitsAtTheStart(t *testing.T) {
	text := &safeBuffer{}
	w := NewWatcher("agent", []Check{{Name: "managers"}}, nil, slog.New(slog.NewTextHandler(text, nil)))
	w.record(0, time.Now(), true, errors.New("not connected"))
	if text.String() != "" {
		t.Errorf("a line before it ever worked: %s", text)
	}
	w.record(0, time.Now(), false, errors.New("not connected"))
	if !strings.Contains(text.String(), "dependency is unavailable") {
		t.Error("no line though it never works")
	}
}

func value(t *testing.T, from prometheus.Gatherer) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil || len(families) != 1 || len(families[0].Metric) != 1 {
		t.Fatalf("metrics: %v, %v", families, err)
	}
	return families[0].Metric[0].GetGauge().GetValue()
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
